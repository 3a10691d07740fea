// Channels whose two ends are in one process: messages meet their receives there, and nothing goes over the network.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/sinks.h"
#include "core/engine.h"
#include "ops/channel/table.h"
#include "port/wire/faulty/faulty.h"
#include "support/in_process_job.h"
#include "unit/channel/linked_pair.h"

namespace brant {
namespace {

using test::JobOptions;
using test::pattern;

/// A network that takes no message.
std::unique_ptr<port::Wire> broken(std::unique_ptr<port::Wire> wire) {
  port::FaultPolicy policy;
  for (const auto point : {port::FaultPoint::tag_send, port::FaultPoint::tag_recv, port::FaultPoint::am_send}) {
    policy.rules.push_back({.point = point, .rate = 1.0});
  }
  return std::make_unique<port::FaultyWire>(std::move(wire), policy);
}

JobOptions alone(bool by_network = false) {
  JobOptions options = test::ranks(1, GpuChoice::emulated);
  if (by_network) {
    options.runtime.path = Path::ucx;
  } else {
    options.wrap = [](int, std::unique_ptr<port::Wire> wire) { return broken(std::move(wire)); };
  }
  return options;
}

/// detect: memory of the C++ library, which no device takes.
constexpr MemoryKind kPlain = MemoryKind::detect;

/// Memory of one kind that a test can fill and read.
class Place {
 public:
  Place(Runtime& runtime, MemoryKind kind, std::size_t bytes) : runtime_(runtime), bytes_(bytes) {
    kind == kPlain ? plain_.resize(bytes) : void(memory_ = runtime.allocate(kind, std::max<std::size_t>(bytes, 1)));
  }
  [[nodiscard]] Buffer buffer() {
    if (!plain_.empty()) return Buffer(plain_.data(), bytes_);
    return Buffer(memory_.data(), bytes_, Buffer(memory_).kind);
  }
  void fill(const std::vector<std::byte>& bytes) {
    plain_.empty() ? void(runtime_.copy(memory_, std::span(bytes))) : void(plain_ = bytes);
  }
  [[nodiscard]] std::vector<std::byte> contents() {
    if (!plain_.empty()) return plain_;
    std::vector<std::byte> bytes(bytes_);
    runtime_.copy(std::span(bytes), memory_);
    return bytes;
  }

 private:
  Runtime& runtime_;
  std::size_t bytes_;
  std::vector<std::byte> plain_;
  Memory memory_;
};

struct Ends {
  explicit Ends(const JobOptions& options = alone()) : job(options), one(open()), other(open()) {}
  Channel open() { return Channel::open(job.rank(0), Rank{0}, ChannelId{7}); }
  Runtime& runtime() { return job.rank(0); }
  ChannelTable& table() { return runtime().worker().engine().service<ChannelTable>(); }
  std::uint64_t sent_by(Path path) { return runtime().worker().engine().counters().path(path).sends.read(); }
  std::uint64_t received_by(Path path) { return runtime().worker().engine().counters().path(path).receives.read(); }

  test::InProcessJob job;
  Channel one;
  Channel other;
};

void expect_next_message_arrives(Ends& ends) {
  const int value = 5;
  int got = 0;
  Operation receive = ends.other.recv(Buffer(&got, sizeof(got)));
  Operation send = ends.one.send(ConstBuffer(&value, sizeof(value)), Moment::delivered);
  EXPECT_TRUE(ends.job.outcome(receive).ok());
  EXPECT_TRUE(ends.job.outcome(send).ok());
  EXPECT_EQ(got, 5);
}

// All kinds
// ----------------------------------------------------------------------------------------------------------------

using Kinds = std::tuple<MemoryKind, MemoryKind>;

std::string name_of(MemoryKind kind) { return kind == kPlain ? "plain" : std::string(memory_kind_name(kind)); }

class LocalChannelKinds : public testing::TestWithParam<Kinds> {};
auto kinds() { return testing::Values(kPlain, MemoryKind::host, MemoryKind::pinned, MemoryKind::emulated); }
INSTANTIATE_TEST_SUITE_P(Kinds, LocalChannelKinds, testing::Combine(kinds(), kinds()), [](const auto& param) {
  return name_of(std::get<0>(param.param)) + "_to_" + name_of(std::get<1>(param.param));
});

TEST_P(LocalChannelKinds, a_message_arrives_whole_without_the_network_whichever_side_comes_first) {
  const auto [from, to] = GetParam();
  Ends ends;
  for (const std::size_t bytes : {1ul, 8ul, 8192ul, 8193ul, 300'000ul, 8'000'000ul}) {
    for (const bool receive_first : {true, false}) {
      SCOPED_TRACE(std::to_string(bytes) + (receive_first ? " receive first" : " send first"));
      Place source(ends.runtime(), from, bytes), landing(ends.runtime(), to, bytes);
      const auto data = pattern(bytes, static_cast<unsigned>(bytes + receive_first));
      source.fill(data);
      landing.fill(std::vector<std::byte>(bytes));
      std::unique_ptr<Operation> receive;
      if (receive_first) receive.reset(new Operation(ends.other.recv(landing.buffer())));
      Operation send = ends.one.send(source.buffer(), Moment::delivered);
      if (!receive_first) ends.job.run(3);
      if (!receive_first) receive.reset(new Operation(ends.other.recv(landing.buffer())));
      EXPECT_TRUE(ends.job.outcome(send).ok());
      EXPECT_TRUE(ends.job.outcome(*receive).ok());
      EXPECT_EQ(receive->result().bytes, bytes);
      EXPECT_TRUE(landing.contents() == data);
    }
  }
  EXPECT_EQ(ends.sent_by(Path::ucx), 0u);
  EXPECT_EQ(ends.table().live(), 0u);
}

TEST_P(LocalChannelKinds, a_window_of_messages_arrives_in_order) {
  const auto [from, to] = GetParam();
  constexpr std::size_t kMessages = 64;
  for (const std::size_t bytes : {100ul, 20'000ul}) {
    for (const bool receives_first : {true, false}) {
      Ends ends;
      std::vector<Place> sources, landings;
      std::vector<Op> sends(kMessages), receives(kMessages);
      Counter all;
      for (unsigned i = 0; i < kMessages; ++i) {
        sources.emplace_back(ends.runtime(), from, bytes).fill(pattern(bytes, i));
        landings.emplace_back(ends.runtime(), to, bytes).fill(std::vector<std::byte>(bytes));
      }
      const auto receive_all = [&] {
        for (std::size_t i = 0; i < kMessages; ++i) {
          receives[i].delivered = all.sink();
          all.track(ends.other.post_recv(landings[i].buffer(), receives[i]), receives[i]);
        }
      };
      if (receives_first) receive_all();
      for (std::size_t i = 0; i < kMessages; ++i) {
        sends[i].source_free = all.sink();
        all.track(ends.one.post_send(sources[i].buffer(), sends[i]), sends[i]);
      }
      if (!receives_first) receive_all();
      ASSERT_TRUE(ends.job.run_until([&] { return all.pending() == 0; }));
      EXPECT_TRUE(all.result().ok());
      for (unsigned i = 0; i < kMessages; ++i) EXPECT_TRUE(landings[i].contents() == pattern(bytes, i)) << i;
    }
  }
}

TEST_P(LocalChannelKinds, a_message_that_is_longer_than_its_receive_is_truncated_at_both_ends) {
  const auto [from, to] = GetParam();
  Ends ends;
  unsigned truncated = 0;
  for (const std::size_t bytes : {100ul, 20'000ul}) {
    for (const bool receive_first : {true, false}) {
      Place source(ends.runtime(), from, bytes), landing(ends.runtime(), to, bytes);
      source.fill(pattern(bytes, 1));
      landing.fill(std::vector<std::byte>(bytes, std::byte{0xee}));
      Buffer room = landing.buffer();
      room.bytes -= 1;
      std::unique_ptr<Operation> receive;
      if (receive_first) receive.reset(new Operation(ends.other.recv(room)));
      Operation send = ends.one.send(source.buffer(), Moment::delivered);
      if (!receive_first) receive.reset(new Operation(ends.other.recv(room)));
      EXPECT_EQ(ends.job.outcome(*receive).status, Status::truncated);
      EXPECT_EQ(receive->result().bytes, bytes);
      EXPECT_EQ(ends.job.outcome(send).status, Status::truncated);
      EXPECT_EQ(landing.contents().back(), std::byte{0xee});
      EXPECT_EQ(ends.one.counts().truncated, ++truncated);
    }
  }
  expect_next_message_arrives(ends);
}

// Paths
// ----------------------------------------------------------------------------------------------------------------

TEST(LocalChannel, is_counted_by_what_moved_the_bytes) {
  Ends ends;
  const auto transfer = [&](MemoryKind from, MemoryKind to) {
    constexpr std::size_t kBytes = 20'000;
    Place source(ends.runtime(), from, kBytes), landing(ends.runtime(), to, kBytes);
    Operation receive = ends.other.recv(landing.buffer());
    Operation send = ends.one.send(source.buffer());
    EXPECT_TRUE(ends.job.outcome(receive).ok());
    EXPECT_TRUE(ends.job.outcome(send).ok());
  };
  const auto expect_counts = [&](Path path, std::uint64_t messages) {
    EXPECT_EQ(ends.sent_by(path), messages) << path_name(path);
    EXPECT_EQ(ends.received_by(path), messages) << path_name(path);
  };
  transfer(kPlain, MemoryKind::pinned);
  expect_counts(Path::shm, 1);
  transfer(MemoryKind::emulated, MemoryKind::pinned);
  transfer(MemoryKind::pinned, MemoryKind::emulated);
  expect_counts(Path::copy_engine, 2);
  transfer(kPlain, MemoryKind::emulated);
  expect_counts(Path::staged, 1);
  EXPECT_EQ(*ends.one.path_of(MemoryKind::host, 1'000'000), Path::shm);
  EXPECT_EQ(*ends.one.path_of(MemoryKind::emulated, std::size_t{64} << 20), Path::copy_engine);
}

TEST(LocalChannel, goes_over_the_network_where_that_is_forced) {
  Ends ends(alone(true));
  expect_next_message_arrives(ends);
  EXPECT_EQ(ends.sent_by(Path::ucx), 1u);
  EXPECT_EQ(ends.sent_by(Path::shm), 0u);
}

TEST(LocalChannel, goes_another_way_where_the_forced_one_does_not_reach_the_receive) {
  Ends ends;
  Channel one = Channel::open(ends.runtime(), Rank{0}, ChannelId{8}, {.path = Path::copy_engine});
  Channel other = Channel::open(ends.runtime(), Rank{0}, ChannelId{8});
  Place source(ends.runtime(), MemoryKind::emulated, 20'000), landing(ends.runtime(), kPlain, 20'000);
  source.fill(pattern(20'000, 3));
  Operation send = one.send(source.buffer());
  Operation receive = other.recv(landing.buffer());
  EXPECT_TRUE(ends.job.outcome(receive).ok());
  EXPECT_TRUE(ends.job.outcome(send).ok());
  EXPECT_TRUE(landing.contents() == pattern(20'000, 3));
  EXPECT_EQ(ends.sent_by(Path::staged), 1u);
}

// The window, and what is taken back
// ----------------------------------------------------------------------------------------------------------------

TEST(LocalChannel, holds_sends_back_that_are_too_far_ahead) {
  Ends ends;
  constexpr std::size_t kMessages = 600;
  std::vector<int> values(kMessages), landed(kMessages, -1);
  std::vector<Op> sends(kMessages), receives(kMessages);
  Counter sent, received;
  for (std::size_t i = 0; i < kMessages; ++i) {
    values[i] = static_cast<int>(i);
    sends[i].source_free = sent.sink();
    sent.track(ends.one.post_send(ConstBuffer(&values[i], sizeof(int)), sends[i]), sends[i]);
  }
  ends.job.run(20);
  EXPECT_EQ(sent.pending(), kMessages - 256);
  EXPECT_EQ(ends.one.counts().waiting, kMessages - 256);
  for (std::size_t i = 0; i < kMessages; ++i) {
    receives[i].delivered = received.sink();
    received.track(ends.other.post_recv(Buffer(&landed[i], sizeof(int)), receives[i]), receives[i]);
  }
  ASSERT_TRUE(ends.job.run_until([&] { return sent.pending() == 0 && received.pending() == 0; }));
  EXPECT_EQ(landed, values);
}

TEST(LocalChannel, what_was_sent_before_the_other_end_was_opened_is_received) {
  test::InProcessJob job(alone());
  Channel one = Channel::open(job.rank(0), Rank{0}, ChannelId{7});
  const auto small = pattern(100, 1), large = pattern(100'000, 2);
  Operation first = one.send(std::span(small)), second = one.send(std::span(large));
  EXPECT_TRUE(first.done()) << "a small message does not wait for its receive";
  job.run(5);
  EXPECT_FALSE(second.done());
  Channel other = Channel::open(job.rank(0), Rank{0}, ChannelId{7});
  std::vector<std::byte> landed(100'000);
  Operation receive_first = other.recv(Buffer(landed.data(), 100));
  EXPECT_TRUE(job.outcome(receive_first).ok());
  EXPECT_TRUE(std::equal(small.begin(), small.end(), landed.begin()));
  Operation receive_second = other.recv(std::span(landed));
  EXPECT_TRUE(job.outcome(receive_second).ok());
  EXPECT_TRUE(job.outcome(second).ok());
  EXPECT_EQ(landed, large);
}

TEST(LocalChannel, a_canceled_receive_leaves_its_turn_to_the_next) {
  Ends ends;
  int value = 0;
  Operation receive = ends.other.recv(Buffer(&value, sizeof(value)));
  receive.op().cancel();
  EXPECT_EQ(ends.job.outcome(receive).status, Status::canceled);
  expect_next_message_arrives(ends);
}

TEST(LocalChannel, a_receive_that_is_dropped_while_it_is_copied_leaves_the_message_to_the_next) {
  for (const MemoryKind kind : {kPlain, MemoryKind::emulated}) {
    Ends ends;
    constexpr std::size_t kBytes = 8'000'000;
    Place source(ends.runtime(), kind, kBytes), landing(ends.runtime(), kind, kBytes),
        unused(ends.runtime(), kind, kBytes);
    source.fill(pattern(kBytes, 9));
    Operation send = ends.one.send(source.buffer());
    {
      Operation dropped = ends.other.recv(unused.buffer());
      EXPECT_FALSE(dropped.done());
    }
    Operation receive = ends.other.recv(landing.buffer());
    EXPECT_TRUE(ends.job.outcome(receive).ok());
    EXPECT_TRUE(ends.job.outcome(send).ok());
    EXPECT_TRUE(landing.contents() == pattern(kBytes, 9)) << name_of(kind);
    EXPECT_EQ(ends.other.counts().received, 1u);
    EXPECT_TRUE(ends.job.run_until([&] { return ends.table().live() == 0; }));
  }
}

TEST(LocalChannel, device_memory_that_was_freed_before_its_receive_came_is_not_read) {
  for (const MemoryKind to : {kPlain, MemoryKind::emulated}) {
    Ends ends;
    auto source = std::make_unique<Place>(ends.runtime(), MemoryKind::emulated, 20'000);
    Operation send = ends.one.send(source->buffer());
    source.reset();
    Place landing(ends.runtime(), to, 20'000);
    Operation receive = ends.other.recv(landing.buffer());
    EXPECT_EQ(ends.job.outcome(send).status, Status::invalid_argument);
    EXPECT_EQ(ends.job.outcome(receive).status, Status::peer_rejected);
    expect_next_message_arrives(ends);
  }
}

TEST(LocalChannel, closing_ends_receives_and_lets_an_observed_send_go_on) {
  Ends ends;
  int value = 0;
  Operation receive = ends.one.recv(Buffer(&value, sizeof(value)));
  const auto large = pattern(100'000, 1);
  Operation send = ends.one.send(std::span(large));
  ends.one.close();
  EXPECT_EQ(ends.job.outcome(receive).status, Status::canceled);
  EXPECT_FALSE(send.done());
  std::vector<std::byte> landed(100'000);
  Operation taken = ends.other.recv(std::span(landed));
  EXPECT_TRUE(ends.job.outcome(taken).ok());
  EXPECT_TRUE(ends.job.outcome(send).ok());
  EXPECT_EQ(landed, large);
}

TEST(LocalChannel, closing_ends_a_send_that_nobody_observes_and_its_receive) {
  Ends ends;
  {
    const auto large = pattern(100'000, 1);
    {
      Operation forgotten = ends.one.send(std::span(large));
    }
    ends.one.close();
  }
  std::vector<std::byte> landed(100'000);
  Operation receive = ends.other.recv(std::span(landed));
  EXPECT_EQ(ends.job.outcome(receive).status, Status::canceled);
}

TEST(LocalChannel, what_nobody_received_ends_when_both_ends_are_closed_and_leaves_nothing_behind) {
  Ends ends;
  const auto large = pattern(100'000, 1);
  const int small = 1;
  Operation send = ends.one.send(std::span(large), Moment::delivered);
  Operation early = ends.one.send(ConstBuffer(&small, sizeof(small)), Moment::delivered);
  ends.one.close();
  ends.other.close();
  EXPECT_EQ(ends.job.outcome(send).status, Status::canceled);
  EXPECT_EQ(ends.job.outcome(early).status, Status::canceled);
  EXPECT_TRUE(ends.job.run_until([&] { return ends.table().ends_in_use() == 0; }));
  ends.one = ends.open();
  ends.other = ends.open();
  expect_next_message_arrives(ends);
}

TEST(LocalChannel, an_end_that_is_opened_again_gets_what_it_did_not_receive_before) {
  Ends ends;
  const int first = 1, second = 2;
  int got = 0;
  EXPECT_TRUE(ends.job.outcome(ends.one.send(ConstBuffer(&first, sizeof(int)))).ok());
  EXPECT_TRUE(ends.job.outcome(ends.one.send(ConstBuffer(&second, sizeof(int)))).ok());
  Operation receive = ends.other.recv(Buffer(&got, sizeof(int)));
  EXPECT_TRUE(ends.job.outcome(receive).ok());
  ends.other.close();
  ends.job.run(5);
  ends.other = ends.open();
  Operation again = ends.other.recv(Buffer(&got, sizeof(int)));
  EXPECT_TRUE(ends.job.outcome(again).ok());
  EXPECT_EQ(got, 2);
}

}  // namespace
}  // namespace brant
