// Entries that wait for other entries of their chare, for streams and for channels.
#include <numeric>
#include <stdexcept>
#include <string>

#include "brant/core/timer.h"
#include "brant/device.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using test::Program;

class Block : public Chare<Block> {
 public:
  explicit Block(int blocks) : blocks_(blocks) {}

  // Awaited by `iterate`.
  void from_left(int, const std::vector<double>&) {}
  void from_right(int step, std::span<const double> face) {
    last_ = step;
    last_sum_ = std::accumulate(face.begin(), face.end(), 0.0);
  }
  /// Sends three steps ahead, so that neighbours get messages of steps to come, and in any order.
  Task<double> iterate(int steps) {
    double total = 0;
    for (int ahead = 0; ahead < 3; ++ahead) send(ahead);
    for (int step = 0; step < steps; ++step) {
      send(step + 3);
      auto [left, right] = co_await when_all(when<&Block::from_left>(step), when<&Block::from_right>(step));
      const auto& [left_step, face] = left;
      auto [right_step, view] = std::move(right);
      EXPECT_EQ(left_step, step);
      EXPECT_EQ(right_step, step);
      EXPECT_EQ(face.size(), 5u);
      total += face[0] + std::accumulate(view.begin(), view.end(), 0.0);
    }
    for (int rest = steps; rest < steps + 3; ++rest) {  // nothing may be left
      co_await when<&Block::from_left>(rest);
      co_await when<&Block::from_right>();
    }
    co_return total;
  }

  void number(int) {}
  /// Backwards: the latest comes first.
  Task<std::vector<int>> collect(int count) {
    std::vector<int> got;
    for (int wanted = count - 1; wanted >= 0; --wanted) {
      auto [value] = co_await when<&Block::number>(wanted);
      got.push_back(value);
    }
    for (int i = 0; i < 3; ++i) {
      auto [value] = co_await when<&Block::number>([i](int candidate) { return candidate % 3 == i; });
      got.push_back(value);
    }
    co_return got;
  }

  /// Gives up a task that waits for a `when` which is not its own, and takes the next call itself.
  Task<int> take_what_another_gave_up() {
    auto next = when<&Block::number>();
    {
      const auto waits = [](decltype(next)& awaited) -> Task<void> { co_await awaited; };
      Task<void> given_up = waits(next);
      given_up.start();
    }
    this_element().call<&Block::number>(5);
    co_await this_element().ask<&Block::ping>();
    auto [value] = co_await next;
    co_return value;
  }

  int question(std::string_view name) { return static_cast<int>(name.size()); }
  Task<void> answer_to(std::string name) { co_await when<&Block::question>(name); }
  int fragile(int value) {
    if (value == 7) throw std::runtime_error("seven");
    return value;
  }
  Task<int> take_fragile() {
    auto [value] = co_await when<&Block::fragile>();
    co_return value;
  }
  void go() {}
  Task<void> wait_for_go() { co_await when<&Block::go>(); }
  Task<double> late_view() {
    auto [step, face] = co_await when<&Block::from_right>(99);
    co_await sleep_for(chares().runtime().worker(), std::chrono::microseconds(200));
    co_return face[0] + last_sum_;
  }
  void ping() {}

 private:
  void send(int step) {
    const std::vector<double> face(5, 1.0 + step);
    const int here = index()[0];
    this_array()[(here + 1) % blocks_].call<&Block::from_left>(step, face);
    this_array()[(here + blocks_ - 1) % blocks_].call<&Block::from_right>(step, face);
  }
  int blocks_;
  int last_ = -1;
  double last_sum_ = 0;
};

Task<void> stencil(Chares& chares) {
  constexpr int kBlocks = 7, kSteps = 10;
  const auto blocks = create_array<Block>(chares, kBlocks, Placement::round_robin(), kBlocks);
  std::vector<Future<double>> totals;
  for (int i = 0; i < kBlocks; ++i) totals.push_back(blocks[i].ask<&Block::iterate>(kSteps));
  for (auto& future : totals) {
    const double total = co_await future;
    EXPECT_EQ(total, 6 * 55);
  }
}
TEST(When, a_stencil_takes_the_faces_of_its_step) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Program program(test::reordering(seed, 1 + static_cast<int>(seed % 4)));
    EXPECT_EQ(program.run(stencil), 0) << "seed " << seed << ": " << program.failure();
  }
}
TEST(When, a_stencil_works_over_a_wire_that_repeats_and_refuses) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Program program(test::faulty(seed));
    EXPECT_EQ(program.run(stencil), 0) << "seed " << seed << ": " << program.failure();
  }
}

const std::vector<int> kBackwards{4, 3, 2, 1, 0, 9, 7, 8};
Task<void> out_of_order(Chares& chares) {
  const auto blocks = create_array<Block>(chares, 2, Placement::round_robin(), 2);
  auto collected = blocks[1].ask<&Block::collect>(5);
  for (int i = 0; i < 5; ++i) blocks[1].call<&Block::number>(i);
  for (int i = 7; i < 10; ++i) blocks.call<&Block::number>(i);  // a broadcast is kept in each element
  const auto got = co_await collected;
  EXPECT_EQ(got, kBackwards);
  for (int i = 0; i < 3; ++i) blocks[1].call<&Block::number>(100 + i);
  chares.exit(3);  // with kept calls: a code other than 0 drops them
}
TEST(When, calls_are_matched_by_value_and_by_predicate_and_kept_meanwhile) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(out_of_order), 3) << program.failure();
}

Task<void> give_up(Chares& chares) {
  const auto blocks = create_array<Block>(chares, 1, Placement::block(), 1);
  const int taken = co_await blocks[0].ask<&Block::take_what_another_gave_up>();
  EXPECT_EQ(taken, 5);
}
TEST(When, who_gives_up_takes_no_call_away_from_those_that_come_after) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(give_up), 0) << program.failure();
}

Task<void> replies(Chares& chares) {
  const auto blocks = create_array<Block>(chares, 2, Placement::round_robin(), 2);
  auto answer = blocks[1].ask<&Block::question>("hello");
  co_await blocks[1].ask<&Block::ping>();
  EXPECT_FALSE(answer.ready()) << "answered only when it is awaited";
  co_await blocks[1].ask<&Block::answer_to>("hello");
  const int length = co_await answer;
  EXPECT_EQ(length, 5);
  auto bad = blocks[0].ask<&Block::fragile>(7);
  auto good = blocks[0].ask<&Block::fragile>(8);
  const int taken = co_await blocks[0].ask<&Block::take_fragile>();
  EXPECT_EQ(taken, 8) << "a call whose body threw was not received";
  const int replied = co_await good;
  EXPECT_EQ(replied, 8);
  std::string text;
  try {
    static_cast<void>(co_await bad);
  } catch (const Error& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("Block[0]::fragile on rank 0 threw: seven"), std::string::npos) << text;
  auto late = blocks[1].ask<&Block::late_view>();
  blocks[1].call<&Block::from_right>(99, std::vector<double>(3, 2.0));
  const double sum = co_await late;
  EXPECT_EQ(sum, 8) << "the span lives as long as what was received; the body has run";
}
TEST(When, an_awaited_call_answers_its_caller_when_it_is_taken) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(replies), 0) << program.failure();
}

Task<void> leave_kept(Chares& chares) {
  const auto blocks = create_array<Block>(chares, 2, Placement::round_robin(), 2);
  blocks[1].call<&Block::go>();
  co_await blocks[1].ask<&Block::ping>();
}
TEST(When, what_nobody_awaits_is_reported_at_the_end) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(leave_kept), 1);
  EXPECT_NE(program.failure().find("Block[1]::go on rank 1, which no when has taken"), std::string::npos)
      << program.failure();
}

Task<void> destroy_with_kept(Chares& chares, bool asked) {
  const auto blocks = create_array<Block>(chares, 2, Placement::round_robin(), 2);
  blocks[1].call<&Block::wait_for_go>();
  co_await blocks[1].ask<&Block::ping>();
  blocks[0].destroy();
  blocks[1].destroy();  // its waiting coroutine goes with it
  const auto others = create_array<Block>(chares, 2, Placement::round_robin(), 2);
  if (asked) {
    auto answer = others[1].ask<&Block::question>("hello");
    others[1].destroy();
    std::string text;
    try {
      static_cast<void>(co_await answer);
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_NE(text.find("was destroyed while it kept 1 calls of question"), std::string::npos) << text;
    co_return;
  }
  others[1].call<&Block::go>();
  others[1].destroy();
  co_await chares.until_exit();
}
TEST(When, a_chare_destroyed_with_kept_calls_says_so) {
  Program asked(test::ranks(2));
  EXPECT_EQ(asked.run(destroy_with_kept, true), 0) << asked.failure();
  Program unasked(test::ranks(2));
  EXPECT_EQ(unasked.run(destroy_with_kept, false), 1);
  EXPECT_NE(unasked.failure().find("Block[1] on rank 1 was destroyed while it kept 1 calls of go (one from rank 0)"),
            std::string::npos)
      << unasked.failure();
}

Task<void> keep_too_many(Chares& chares) {
  const auto blocks = create_array<Block>(chares, 1, Placement::block(), 1);
  for (int i = 0; i < 70'000; ++i) {
    blocks[0].call<&Block::go>();
    if (i % 1000 == 0) co_await blocks[0].ask<&Block::ping>();
  }
  co_await chares.until_exit();
}
TEST(When, kept_calls_are_bounded) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(keep_too_many), 1);
  EXPECT_NE(program.failure().find("Block[0]::go on rank 0 threw: it keeps 65536 calls"), std::string::npos)
      << program.failure();
}

/// Fills device memory in a stream and waits for it without blocking.
class Filler : public Chare<Filler> {
 public:
  Task<int> fill(int value) {
    Runtime& runtime = chares().runtime();
    Stream stream = runtime.device().create_stream();
    Memory memory = runtime.allocate(runtime.device_kind(), 4096);
    EXPECT_EQ(stream.fill(memory, static_cast<std::byte>(value)), Status::ok);
    co_await stream_done(runtime, stream);
    std::vector<unsigned char> copy(4096);
    co_await copy_done(runtime, std::span<unsigned char>(copy), memory);
    co_return std::accumulate(copy.begin(), copy.end(), 0) / 4096;
  }
  Task<void> nothing() {
    bool thrown = false;
    try {
      co_await stream_done(chares().runtime(), nullptr);
    } catch (const Error& error) {
      thrown = error.status() == Status::not_supported;
    }
    EXPECT_TRUE(thrown) << "without a device there are no streams";
    std::vector<unsigned char> from(10, 7), to(10);
    co_await copy_done(chares().runtime(), std::span<unsigned char>(to), std::span<unsigned char>(from));
    EXPECT_EQ(to, from);
  }
};

Task<void> streams(Chares& chares) {
  const auto fillers = create_array<Filler>(chares, 6, Placement::round_robin());
  std::vector<Future<int>> values;
  for (int i = 0; i < 6; ++i) values.push_back(fillers[i].ask<&Filler::fill>(i + 40));
  for (int i = 0; i < 6; ++i) {
    const int value = co_await values[static_cast<std::size_t>(i)];
    EXPECT_EQ(value, i + 40);
  }
}
TEST(When, a_coroutine_waits_for_a_device_stream) {
  test::JobOptions options = test::ranks(2);
  options.gpu = GpuChoice::emulated;
  Program program(options);
  EXPECT_EQ(program.run(streams), 0) << program.failure();
}
Task<void> no_streams(Chares& chares) {
  co_await create_array<Filler>(chares, 1, Placement::block())[0].ask<&Filler::nothing>();
}
TEST(When, without_a_device_streams_are_refused_and_copies_work) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(no_streams), 0) << program.failure();
}

/// Two entries talk over a channel while calls go on.
class Talker : public Chare<Talker> {
 public:
  Task<int> talk(int peer) {
    Channel channel = Channel::open(chares().runtime(), Rank{peer}, ChannelId{5});
    std::vector<int> out(100, index()[0] + 1), in(100);
    Operation incoming = channel.recv(std::span<int>(in));
    Operation outgoing = channel.send(std::span<const int>(out));
    const OpResult got = co_await incoming;
    EXPECT_EQ(got.bytes, 400u);
    EXPECT_TRUE((co_await outgoing).ok());
    co_await this_element().ask<&Talker::ping>();
    co_return in[99];
  }
  void ping() {}
};
Task<void> channels(Chares& chares) {
  const auto talkers = create_group<Talker>(chares);
  auto first = talkers[0].ask<&Talker::talk>(1);
  auto second = talkers[1].ask<&Talker::talk>(0);
  const int one = co_await first;
  EXPECT_EQ(one, 2);
  const int two = co_await second;
  EXPECT_EQ(two, 1);
}
TEST(When, entries_await_channel_operations) {
  Program program(test::reordering(4, 2));
  EXPECT_EQ(program.run(channels), 0) << program.failure();
}

class Doubter : public Chare<Doubter> {
 public:
  void offer(int) {}
  Task<int> doubt() {
    auto [value] = co_await when<&Doubter::offer>([](int) -> bool { throw std::runtime_error("no idea"); });
    co_return value;
  }
  Task<int> doubt_and_another() {
    auto [one, other] = co_await when_all(
        when<&Doubter::offer>([](int) -> bool { throw std::runtime_error("no idea"); }), when<&Doubter::offer>(1));
    co_return one.get<0>() + other.get<0>();
  }
  Task<int> take() {
    auto [value] = co_await when<&Doubter::offer>();
    co_return value;
  }
};

void expect_doubt(const Error& error, const std::string& method) {
  const std::string text = error.what();
  EXPECT_NE(text.find("Doubter[1]::" + method), std::string::npos) << text;
  EXPECT_NE(text.find("no idea"), std::string::npos) << text;
}

Task<void> doubts(Chares& chares) {
  const Element<Doubter> doubter = create_array<Doubter>(chares, 2, Placement::round_robin())[1];
  for (const bool kept : {false, true}) {
    if (kept) doubter.call<&Doubter::offer>(7);
    auto doubt = doubter.ask<&Doubter::doubt>();
    if (!kept) doubter.call<&Doubter::offer>(7);
    try {
      co_await doubt;
      ADD_FAILURE() << "no exception";
    } catch (const Error& error) {
      expect_doubt(error, "doubt");
    }
    const int taken = co_await doubter.ask<&Doubter::take>();
    EXPECT_EQ(taken, 7) << "the call is there for another";
  }
  auto taker = doubter.ask<&Doubter::doubt>();
  auto other = doubter.ask<&Doubter::take>();
  doubter.call<&Doubter::offer>(8);
  const int taken = co_await other;
  EXPECT_EQ(taken, 8) << "whoever else waits gets it at once";
  try {
    co_await taker;
    ADD_FAILURE() << "no exception";
  } catch (const Error& error) {
    expect_doubt(error, "doubt");
  }
  auto both = doubter.ask<&Doubter::doubt_and_another>();
  doubter.call<&Doubter::offer>(1);
  try {
    co_await both;
    ADD_FAILURE() << "no exception";
  } catch (const Error& error) {
    expect_doubt(error, "doubt_and_another");
  }
}
TEST(When, an_exception_of_a_predicate_goes_to_the_method_that_waits_and_leaves_the_call) {
  Program program(test::ranks(2));
  EXPECT_EQ(program.run(doubts), 0) << program.failure();
}

}  // namespace
}  // namespace brant
