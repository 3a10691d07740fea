// Channels, quiescence and deadlock: a receive that waits keeps nothing alive, a message on its way does.
#include <array>
#include <deque>
#include <numeric>

#include "brant/core/timer.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using test::JobOptions;
using test::Program;

class LineCaller : public Chare<LineCaller> {
 public:
  Task<void> listen(Element<LineCaller> peer, int messages) {
    Channel channel = co_await open_channel(*this, peer);
    std::vector<int> in(5000);
    for (int i = 0; i < messages; ++i) {
      EXPECT_TRUE((co_await channel.recv(std::span<int>(in))).ok());
      ++heard_;
    }
  }
  Task<void> speak(Element<LineCaller> peer, int messages, int count) {
    Channel channel = co_await open_channel(*this, peer);
    const std::vector<int> out(static_cast<std::size_t>(count), 7);
    for (int i = 0; i < messages; ++i) EXPECT_TRUE((co_await channel.send(std::span<const int>(out))).ok());
    if (messages == 0) kept_ = std::move(channel);
    ++spoken_;
  }
  /// Leaves the channel open: what was sent last may never be received.
  Task<void> speak_on(Element<LineCaller> peer, int messages, int count) {
    kept_ = co_await open_channel(*this, peer);
    const std::vector<int> out(static_cast<std::size_t>(count), 7);
    std::deque<Operation> all;
    for (int i = 0; i < messages; ++i) {
      all.emplace_back(Moment::source_free,
                       [&](Op& op) noexcept { return kept_.post_send(std::span<const int>(out), op); });
    }
    for (Operation& one : all) EXPECT_TRUE((co_await one).ok());
    ++spoken_;
  }
  Task<void> say(int count) {
    const std::vector<int> out(static_cast<std::size_t>(count), 7);
    EXPECT_TRUE((co_await kept_.send(std::span<const int>(out))).ok());
  }
  /// A rally of messages over a channel: nothing else happens in the job.
  Task<int> rally(Element<LineCaller> peer, bool serves, int rounds, int count) {
    Channel channel = co_await open_channel(*this, peer);
    Runtime& runtime = chares().runtime();
    Memory ball = runtime.allocate(runtime.device_kind(), static_cast<std::size_t>(count) * sizeof(int));
    int strokes = 0;
    for (int round = 0; round < rounds; ++round) {
      const Moment until = round % 2 == 0 ? Moment::delivered : Moment::source_free;
      if (serves) {
        EXPECT_TRUE((co_await channel.send(ball, until)).ok());
      }
      const OpResult got = co_await channel.recv(ball);
      strokes += got.ok() ? 1 : 0;
      if (!serves) {
        EXPECT_TRUE((co_await channel.send(ball)).ok());
      }
    }
    co_return strokes;
  }
  Task<void> overhear(Rank rank) {
    Channel channel = Channel::open(chares().runtime(), rank, ChannelId{9});
    int in = 0;
    static_cast<void>(co_await channel.recv(Buffer(&in, sizeof(in))));  // nothing comes
  }
  void nothing() {}
  int heard() { return heard_; }
  int spoken() { return spoken_; }

 private:
  Channel kept_;
  int heard_ = 0, spoken_ = 0;
};

bool contains(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string::npos) return false;
  }
  return true;
}
ChareOptions impatient(int milliseconds = 20) {
  ChareOptions options;
  options.deadlock_after = std::chrono::milliseconds(milliseconds);
  return options;
}
/// Rounds without work are short: some milliseconds are many.
template <typename Main, typename... Args>
int run_long(Program& program, Main main, Args... args) {
  program.rank(0).start(main(program.rank(0), std::move(args)...));
  return program.run_on(50'000'000);
}

Task<void> one_message_too_few(Chares& chares) {
  const auto callers = create_array<LineCaller>(chares, 4, Placement::round_robin());
  auto heard = callers[1].ask<&LineCaller::listen>(callers[2], 4);
  callers[2].call<&LineCaller::speak>(callers[1], 3, 100);
  co_await heard;
}
TEST(ChannelDeadlock, a_receive_that_nobody_serves_is_named_with_its_chare_and_channel) {
  for (const int ranks : {1, 2, 3}) {
    for (const JobOptions& options : test::variants(test::reordering(3, ranks))) {
      Program program(options, impatient());
      EXPECT_EQ(run_long(program, one_message_too_few), 1);
      EXPECT_TRUE(contains(program.failure(),
                           {"deadlock: nothing can run", "the main task on rank 0",
                            "LineCaller[1]::listen on rank " + std::to_string(1 % ranks) +
                                " waits for message 3 on its channel with brant::{anonymous}::LineCaller[2] (channel ",
                            " to rank " + std::to_string(2 % ranks) + "), since "}))
          << program.failure();
    }
  }
}

/// Both send more than travels ahead, and wait for that.
Task<void> both_send(Chares& chares) {
  const auto callers = create_array<LineCaller>(chares, 2, Placement::round_robin());
  auto one = callers[0].ask<&LineCaller::speak>(callers[1], 1, 100'000);
  auto other = callers[1].ask<&LineCaller::speak>(callers[0], 1, 100'000);
  co_await one;
  co_await other;
}
TEST(ChannelDeadlock, sends_that_nobody_receives_are_named) {
  for (const int ranks : {1, 2}) {
    for (const JobOptions& options : test::variants(test::reordering(5, ranks))) {
      Program program(options, impatient());
      EXPECT_EQ(run_long(program, both_send), 1);
      for (const int i : {0, 1}) {
        EXPECT_TRUE(contains(program.failure(),
                             {"LineCaller[" + std::to_string(i) + "]::speak on rank " + std::to_string(i % ranks) +
                              " waits for a receive of its message 0 (400000 bytes) on its channel with "
                              "brant::{anonymous}::LineCaller[" +
                              std::to_string(1 - i) + "]"}))
            << program.failure();
      }
    }
  }
}

/// The window is full, and what was sent lies unread.
Task<void> nobody_reads(Chares& chares) {
  const auto callers = create_array<LineCaller>(chares, 2, Placement::round_robin());
  auto spoken = callers[0].ask<&LineCaller::speak_on>(callers[1], 400, 10);
  callers[1].call<&LineCaller::speak>(callers[0], 0, 1);
  co_await spoken;
}
TEST(ChannelDeadlock, sends_that_the_window_holds_back_are_named) {
  for (const JobOptions& options : test::variants(test::reordering(5, 2))) {
    Program program(options, impatient());
    EXPECT_EQ(run_long(program, nobody_reads), 1);
    EXPECT_TRUE(contains(program.failure(),
                         {"LineCaller[0]::speak_on on rank 0 waits for room for a message of 40 bytes on its "
                          "channel with brant::{anonymous}::LineCaller[1]"}))
        << program.failure();
  }
}

/// An unread message in one channel must not hide that another waits in vain.
Task<void> wrong_channel(Chares& chares) {
  const auto callers = create_array<LineCaller>(chares, 3, Placement::round_robin());
  callers[0].call<&LineCaller::speak_on>(callers[1], 2, 10);
  callers[1].call<&LineCaller::speak>(callers[0], 0, 1);
  callers[2].call<&LineCaller::speak>(callers[1], 0, 1);
  co_await callers[1].ask<&LineCaller::listen>(callers[2], 1);
}
TEST(ChannelDeadlock, an_unread_message_elsewhere_hides_nothing) {
  for (const int ranks : {1, 3}) {
    for (const JobOptions& options : test::variants(test::reordering(6, ranks))) {
      Program program(options, impatient());
      EXPECT_EQ(run_long(program, wrong_channel), 1);
      EXPECT_TRUE(contains(program.failure(), {"LineCaller[1]::listen on rank ",
                                               " waits for message 0 on its channel with ", "LineCaller[2]"}))
          << program.failure();
    }
  }
}

Task<void> never_met(Chares& chares) {
  const auto callers = create_array<LineCaller>(chares, 3, Placement::round_robin());
  co_await callers[1].ask<&LineCaller::listen>(callers[2], 1);
}
TEST(ChannelDeadlock, an_opening_that_the_other_chare_never_answers_is_named) {
  Program program(test::ranks(2), impatient());
  EXPECT_EQ(run_long(program, never_met), 1);
  EXPECT_TRUE(contains(program.failure(),
                       {"LineCaller[1]::listen on rank 1 waits for brant::{anonymous}::LineCaller[2] to open "
                        "a channel with it (number 0), since "}))
      << program.failure();
}

Task<void> plain_channel(Chares& chares) {
  const auto callers = create_group<LineCaller>(chares);
  callers[1].call<&LineCaller::overhear>(Rank{0});
  Channel channel = Channel::open(chares.runtime(), Rank{1}, ChannelId{9});
  int in = 0;
  static_cast<void>(co_await channel.recv(Buffer(&in, sizeof(in))));  // nothing comes
}
TEST(ChannelDeadlock, channels_that_are_no_chares_are_named_too) {
  for (const JobOptions& options : test::variants(test::ranks(2))) {
    Program program(options, impatient());
    EXPECT_EQ(run_long(program, plain_channel), 1);
    EXPECT_TRUE(contains(program.failure(), {"a receive on rank 0 waits for message 0 on channel 9 with rank 1, since",
                                             "a receive on rank 1 waits for message 0 on channel 9 with rank 0, since",
                                             "LineCaller[1]::overhear on rank 1 waits for"}))
        << program.failure();
  }
}

/// Nothing but channel messages, each far slower than the patience of the report.
Task<void> rallies(Chares& chares, int rounds) {
  const auto callers = create_array<LineCaller>(chares, 6, Placement::round_robin());
  std::vector<Future<int>> done;
  for (const int count : {1, 60'000}) {
    for (int i = 0; i < 6; i += 2) {
      done.push_back(callers[i].ask<&LineCaller::rally>(callers[i + 1], true, rounds, count));
      done.push_back(callers[i + 1].ask<&LineCaller::rally>(callers[i], false, rounds, count));
    }
    for (auto& one : done) {
      const int strokes = co_await one;
      EXPECT_EQ(strokes, rounds);
    }
    done.clear();
  }
}
TEST(ChannelDeadlock, messages_on_their_way_are_none_however_slow) {
  for (const int ranks : {2, 3}) {
    const JobOptions base = test::reordering(8, ranks);
    // The network's part alone, and with links and device memory beside it: all variants would take minutes.
    for (JobOptions options :
         {test::with(base, false, GpuChoice::none, false), test::with(base, true, GpuChoice::emulated, true)}) {
      options.network.delay_min = 500;
      options.network.delay_max = 5'000;
      Program program(options, impatient(1));
      EXPECT_EQ(run_long(program, rallies, 3), 0) << program.failure();
    }
  }
}
TEST(ChannelDeadlock, fast_rallies_are_none_over_a_faulty_wire_either) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Program program(test::faulty(seed, 3), impatient(1));
    EXPECT_EQ(run_long(program, rallies, 200), 0) << program.failure();
  }
}

/// Quiescence while a receive waits for ever comes; while its message travels it does not.
Task<void> settle(Chares& chares) {
  const auto callers = create_array<LineCaller>(chares, 3, Placement::round_robin());
  auto listening = callers[1].ask<&LineCaller::listen>(callers[2], 4);
  co_await chares.quiescence();  // an opening that waits is no obstacle
  callers[2].call<&LineCaller::speak_on>(callers[1], 1, 1);
  for (int round = 1; round <= 3; ++round) {
    co_await chares.quiescence();
    const int heard = co_await callers[1].ask<&LineCaller::heard>();
    EXPECT_EQ(heard, round) << "what was sent has come";
    callers[2].call<&LineCaller::say>(round == 1 ? 5000 : 1);
  }
  chares.exit(3);
  co_await chares.until_exit();
}
TEST(ChannelQuiescence, waits_for_messages_and_not_for_receives) {
  for (const int ranks : {1, 2, 3}) {
    for (const bool slow : {false, true}) {
      for (JobOptions& options : test::variants(test::reordering(9, ranks))) {
        if (slow) options.network.delay_max = 20'000;
        Program program(options, impatient(5000));
        EXPECT_EQ(run_long(program, settle), 3) << program.failure();
      }
    }
  }
}

/// A message without a receive is no obstacle either, though it takes until nothing has moved for a while.
Task<void> settle_unread(Chares& chares, int count) {
  const auto callers = create_array<LineCaller>(chares, 3, Placement::round_robin());
  callers[1].call<&LineCaller::speak>(callers[2], 0, 1);
  callers[2].call<&LineCaller::speak_on>(callers[1], 1, count);
  co_await chares.quiescence();
  chares.exit(3);
  co_await chares.until_exit();
}
TEST(ChannelQuiescence, comes_though_a_message_is_never_received) {
  for (const int count : {1, 100'000}) {
    for (const JobOptions& options : test::variants(test::reordering(9, 2))) {
      Program program(options, impatient());
      EXPECT_EQ(run_long(program, settle_unread, count), 3) << program.failure();
    }
  }
}

}  // namespace
}  // namespace brant
