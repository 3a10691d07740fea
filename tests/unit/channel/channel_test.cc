#include "brant/ops/channel.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/sinks.h"
#include "brant/core/timer.h"
#include "support/effort.h"
#include "support/grounds.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;
using test::JobOptions;
using test::pattern;

/// Two ranks and a channel between them.
struct Pair {
  explicit Pair(const JobOptions& options = {}, const ChannelOptions& channel = {})
      : job(options),
        left(Channel::open(job.rank(0), Rank{1}, ChannelId{7}, channel)),
        right(Channel::open(job.rank(1), Rank{0}, ChannelId{7}, channel)) {}

  OpResult outcome(const Operation& operation) { return job.outcome(operation); }

  InProcessJob job;
  Channel left;
  Channel right;
};

struct DevicePair : Pair {
  explicit DevicePair(bool network_takes_device = false) : Pair(options(network_takes_device)) {}
  static JobOptions options(bool network_takes_device) {
    JobOptions options;
    options.gpu = GpuChoice::emulated;
    options.network_takes_device = network_takes_device;
    return options;
  }
};

JobOptions reordering(std::uint64_t seed) {
  JobOptions options;
  options.network.seed = seed;
  options.network.delay_max = 5;
  options.network.shuffle_pairs = true;
  options.network.shuffle_tags = true;
  return options;
}

class ChannelSizes : public testing::TestWithParam<std::size_t> {};

TEST_P(ChannelSizes, a_message_arrives_whole_whichever_side_comes_first) {
  Pair pair;
  const auto sent = pattern(GetParam(), 1);
  for (const bool receive_first : {true, false}) {
    std::vector<std::byte> landed(sent.size() + 16, std::byte{0xee});
    const Buffer landing(landed.data(), landed.size());
    std::unique_ptr<Operation> receive;
    if (receive_first) receive.reset(new Operation(pair.right.recv(landing)));
    Operation send = pair.left.send(std::span(sent));
    if (!receive_first) pair.job.run(3);
    if (!receive_first) receive.reset(new Operation(pair.right.recv(landing)));
    const OpResult received = pair.outcome(*receive);
    EXPECT_TRUE(received.ok()) << status_name(received.status);
    EXPECT_EQ(received.bytes, sent.size());
    EXPECT_TRUE(pair.outcome(send).ok());
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), landed.begin()));
    EXPECT_EQ(landed[sent.size()], std::byte{0xee});
  }
}
INSTANTIATE_TEST_SUITE_P(Bytes, ChannelSizes, testing::Values(0, 1, 8, 8191, 8192, 8193, 100'000, 3'000'000));

TEST(Channel, messages_match_in_order_under_any_delivery_order) {
  for (std::uint64_t seed = 1; seed <= test::effort(30u, 10u); ++seed) {
    Pair pair(reordering(seed));
    constexpr std::size_t kMessages = 120;
    std::vector<std::vector<std::byte>> sent;
    std::vector<std::vector<std::byte>> landed;
    std::vector<Op> sends(kMessages);
    std::vector<Op> receives(kMessages);
    Counter both;
    for (std::size_t i = 0; i < kMessages; ++i) {
      sent.push_back(pattern((i * 7919) % 20'000, static_cast<unsigned>(i)));
      landed.emplace_back(20'000);
      sends[i].source_free = both.sink();
      receives[i].delivered = both.sink();
    }
    for (std::size_t i = 0; i < kMessages; ++i) {
      both.track(pair.left.post_send(std::span(sent[i]), sends[i]), sends[i]);
      if (i % 3 == seed % 3) pair.job.run(1);
      both.track(pair.right.post_recv(std::span(landed[i]), receives[i]), receives[i]);
    }
    ASSERT_TRUE(pair.job.run_until([&] { return both.pending() == 0; })) << "seed " << seed;
    EXPECT_TRUE(both.result().ok());
    for (std::size_t i = 0; i < kMessages; ++i) {
      EXPECT_EQ(receives[i].result.bytes, sent[i].size());
      EXPECT_TRUE(std::equal(sent[i].begin(), sent[i].end(), landed[i].begin())) << "message " << i << " seed " << seed;
    }
  }
}

TEST(Channel, both_directions_at_once_within_one_process) {
  InProcessJob job(test::ranks(1));
  Channel one = Channel::open(job.rank(0), Rank{0}, ChannelId{3});
  Channel other = Channel::open(job.rank(0), Rank{0}, ChannelId{3});
  int from_one = 1, from_other = 2, at_one = 0, at_other = 0;
  Operation receive_at_one = one.recv(Buffer(&at_one, sizeof(int)));
  Operation receive_at_other = other.recv(Buffer(&at_other, sizeof(int)));
  Operation send_one = one.send(ConstBuffer(&from_one, sizeof(int)));
  Operation send_other = other.send(ConstBuffer(&from_other, sizeof(int)));
  ASSERT_TRUE(job.run_until(
      [&] { return receive_at_one.done() && receive_at_other.done() && send_one.done() && send_other.done(); }));
  EXPECT_EQ(at_one, 2);
  EXPECT_EQ(at_other, 1);
}

TEST(Channel, many_channels_between_two_ranks_do_not_mix) {
  InProcessJob job(reordering(11));
  std::vector<Channel> left, right;
  std::vector<int> values(50), landed(50, -1);
  std::iota(values.begin(), values.end(), 1000);
  std::vector<Op> ops(100);
  Counter all;
  for (std::uint32_t i = 0; i < 50; ++i) {
    left.push_back(Channel::open(job.rank(0), Rank{1}, ChannelId{i}));
    right.push_back(Channel::open(job.rank(1), Rank{0}, ChannelId{i}));
  }
  for (std::size_t i = 50; i-- > 0;) {
    ops[i].source_free = all.sink();
    all.track(left[i].post_send(ConstBuffer(&values[i], sizeof(int)), ops[i]), ops[i]);
  }
  for (std::size_t i = 0; i < 50; ++i) {
    ops[50 + i].delivered = all.sink();
    all.track(right[i].post_recv(Buffer(&landed[i], sizeof(int)), ops[50 + i]), ops[50 + i]);
  }
  ASSERT_TRUE(job.run_until([&] { return all.pending() == 0; }));
  EXPECT_EQ(landed, values);
}

TEST(Channel, a_longer_message_completes_both_sides_with_truncated) {
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{100'000}}) {
    Pair pair;
    const auto sent = pattern(bytes, 5);
    std::vector<std::byte> landed(50);
    Operation send = pair.left.send(std::span(sent), Moment::delivered);
    Operation receive = pair.right.recv(std::span(landed));
    EXPECT_EQ(pair.outcome(receive).status, Status::truncated) << bytes;
    EXPECT_EQ(pair.outcome(send).status, Status::truncated) << bytes;
    pair.job.run(20);
    EXPECT_EQ(pair.left.counts().truncated, 1u);
    // The channel goes on: the message was consumed.
    int value = 9, got = 0;
    Operation next_receive = pair.right.recv(Buffer(&got, sizeof(int)));
    Operation next_send = pair.left.send(ConstBuffer(&value, sizeof(int)));
    EXPECT_TRUE(pair.outcome(next_receive).ok());
    EXPECT_EQ(got, 9);
    EXPECT_TRUE(pair.outcome(next_send).ok());
  }
}

TEST(Channel, delivered_comes_only_after_the_receive) {
  Pair pair;
  int value = 4, got = 0;
  Operation send = pair.left.send(ConstBuffer(&value, sizeof(int)), Moment::delivered);
  pair.job.run(200);
  EXPECT_FALSE(send.done());
  Operation receive = pair.right.recv(Buffer(&got, sizeof(int)));
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_TRUE(receive.done());
  EXPECT_EQ(got, 4);
}

TEST(Channel, source_free_and_delivered_are_both_reported_once) {
  Pair pair;
  int value = 4, got = 0;
  Op op;
  int source_free = 0, delivered = 0;
  const auto count = [](void* self, const OpResult& result) noexcept {
    if (result.ok()) ++*static_cast<int*>(self);
  };
  op.source_free = {count, &source_free};
  op.delivered = {count, &delivered};
  ASSERT_EQ(pair.left.post_send(ConstBuffer(&value, sizeof(int)), op), Status::in_progress);
  pair.job.run(100);
  EXPECT_EQ(source_free, 1);
  EXPECT_EQ(delivered, 0);
  EXPECT_TRUE(op.pending());
  Operation receive = pair.right.recv(Buffer(&got, sizeof(int)));
  ASSERT_TRUE(pair.job.run_until([&] { return delivered == 1; }));
  pair.job.run(100);
  EXPECT_EQ(source_free, 1);
  EXPECT_EQ(delivered, 1);
  EXPECT_FALSE(op.pending());
}

TEST(Channel, a_record_can_be_posted_again_after_an_outcome_at_once) {
  Pair pair;
  int value = 4, got = 0, fired = 0;
  Op op;
  op.source_free = {[](void* self, const OpResult&) noexcept { ++*static_cast<int*>(self); }, &fired};
  ASSERT_EQ(pair.left.post_send(ConstBuffer(&value, sizeof(int)), op), Status::ok);
  ASSERT_EQ(pair.left.post_recv(Buffer(&got, sizeof(int)), op), Status::in_progress);
  op.cancel();
  pair.job.run(20);
  EXPECT_EQ(fired, 0);
  EXPECT_FALSE(op.pending());
}

TEST(Channel, a_sender_that_runs_ahead_is_held_back_and_loses_nothing) {
  Pair pair;
  constexpr std::size_t kMessages = 1000;
  std::vector<std::size_t> values(kMessages), landed(kMessages);
  std::iota(values.begin(), values.end(), 0u);
  std::vector<Op> sends(kMessages), receives(kMessages);
  Counter sent, received;
  for (std::size_t i = 0; i < kMessages; ++i) {
    sends[i].source_free = sent.sink();
    sent.track(pair.left.post_send(ConstBuffer(&values[i], sizeof(values[i])), sends[i]), sends[i]);
  }
  pair.job.run(1000);
  EXPECT_EQ(pair.left.counts().sent, 256u);
  EXPECT_EQ(pair.left.counts().waiting, kMessages - 256);
  EXPECT_EQ(sent.pending(), kMessages - 256);
  for (std::size_t i = 0; i < kMessages; ++i) {
    receives[i].delivered = received.sink();
    received.track(pair.right.post_recv(Buffer(&landed[i], sizeof(landed[i])), receives[i]), receives[i]);
    if (i % 10 == 0) pair.job.run(1);
  }
  ASSERT_TRUE(pair.job.run_until([&] { return sent.pending() + received.pending() == 0; }));
  EXPECT_EQ(landed, values);
}

TEST(Channel, a_withdrawn_receive_gives_its_turn_to_the_next) {
  Pair pair;
  int value = 6, wrong = 0, right = 0;
  Operation first = pair.right.recv(Buffer(&wrong, sizeof(int)));
  first.op().cancel();
  EXPECT_EQ(pair.outcome(first).status, Status::canceled);
  Operation send = pair.left.send(ConstBuffer(&value, sizeof(int)));
  Operation second = pair.right.recv(Buffer(&right, sizeof(int)));
  EXPECT_TRUE(pair.outcome(second).ok());
  EXPECT_EQ(right, 6);
  EXPECT_EQ(wrong, 0);
}

TEST(Channel, closing_completes_pending_receives_and_held_back_sends) {
  Pair pair;
  int got = 0;
  Operation receive = pair.right.recv(Buffer(&got, sizeof(int)));
  pair.right.close();
  EXPECT_EQ(pair.outcome(receive).status, Status::canceled);
  Op op;
  EXPECT_EQ(pair.right.post_recv(Buffer(&got, sizeof(int)), op), Status::invalid_argument);
  EXPECT_FALSE(pair.right.is_open());
}

TEST(Channel, reopened_under_the_same_id_goes_on) {
  Pair pair;
  for (int round = 0; round < 3; ++round) {
    int value = 10 + round, got = 0;
    Operation receive = pair.right.recv(Buffer(&got, sizeof(int)));
    Operation send = pair.left.send(ConstBuffer(&value, sizeof(int)));
    EXPECT_TRUE(pair.outcome(receive).ok());
    EXPECT_TRUE(pair.outcome(send).ok());
    EXPECT_EQ(got, value);
    pair.left.close();
    pair.right.close();
    pair.left = Channel::open(pair.job.rank(0), Rank{1}, ChannelId{7});
    pair.right = Channel::open(pair.job.rank(1), Rank{0}, ChannelId{7});
  }
}

TEST(Channel, a_closed_id_may_go_to_another_rank) {
  InProcessJob job(test::ranks(3));
  {
    Channel one = Channel::open(job.rank(0), Rank{1}, ChannelId{4});
    Channel other = Channel::open(job.rank(1), Rank{0}, ChannelId{4});
    job.run(20);
  }
  job.run(20);
  Channel one = Channel::open(job.rank(0), Rank{2}, ChannelId{4});
  Channel other = Channel::open(job.rank(2), Rank{0}, ChannelId{4});
  int value = 2, got = 0;
  Operation receive = other.recv(Buffer(&got, sizeof(int)));
  Operation send = one.send(ConstBuffer(&value, sizeof(int)));
  ASSERT_TRUE(job.run_until([&] { return receive.done(); }));
  EXPECT_EQ(got, 2);
}

TEST(Channel, a_message_larger_than_the_window_follows_small_ones) {
  Pair pair;
  int value = 1, got = 0;
  Operation small_receive = pair.right.recv(Buffer(&got, sizeof(int)));
  Operation small_send = pair.left.send(ConstBuffer(&value, sizeof(int)));
  ASSERT_TRUE(pair.outcome(small_receive).ok());
  std::vector<std::byte> sent(65u << 20, std::byte{3}), landed(65u << 20);
  Operation receive = pair.right.recv(std::span(landed));
  Operation send = pair.left.send(std::span(sent));
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_EQ(std::memcmp(landed.data(), sent.data(), sent.size()), 0);
}

TEST(ChannelWithDevice, tells_the_path_a_buffer_takes) {
  DevicePair pair;
  EXPECT_EQ(*pair.left.path_of(MemoryKind::host, 8), JobOptions{}.links ? Path::shm : Path::ucx);
  EXPECT_EQ(*pair.left.path_of(MemoryKind::emulated, 8), JobOptions{}.links ? test::small_mapped_path() : Path::staged);
  EXPECT_EQ(pair.left.path_of(MemoryKind::detect, 8).status(), Status::invalid_argument);
}

TEST(Channel, withdrawn_receives_give_their_turns_back_in_the_order_of_the_messages) {
  Pair pair;
  int unused[2] = {}, got[2] = {};
  {
    Operation first = pair.right.recv(Buffer(&unused[0], sizeof(int)));
    Operation second = pair.right.recv(Buffer(&unused[1], sizeof(int)));
    second.op().cancel();
    EXPECT_EQ(pair.outcome(second).status, Status::canceled);
    first.op().cancel();
    EXPECT_EQ(pair.outcome(first).status, Status::canceled);
  }
  const int sent[2] = {1, 2};
  Operation receives[] = {pair.right.recv(Buffer(&got[0], sizeof(int))), pair.right.recv(Buffer(&got[1], sizeof(int)))};
  Operation sends[] = {pair.left.send(ConstBuffer(&sent[0], sizeof(int))),
                       pair.left.send(ConstBuffer(&sent[1], sizeof(int)))};
  for (const Operation& operation : receives) EXPECT_TRUE(pair.outcome(operation).ok());
  for (const Operation& operation : sends) EXPECT_TRUE(pair.outcome(operation).ok());
  EXPECT_EQ(got[0], 1);
  EXPECT_EQ(got[1], 2);
}

TEST(Channel, an_operation_destroyed_while_pending_is_withdrawn) {
  Pair pair;
  int value = 3, got = 0;
  {
    int gone = 0;
    Operation forgotten = pair.right.recv(Buffer(&gone, sizeof(int)));
  }
  pair.job.run(10);
  Operation receive = pair.right.recv(Buffer(&got, sizeof(int)));
  Operation send = pair.left.send(ConstBuffer(&value, sizeof(int)));
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_EQ(got, 3);
}

TEST(Channel, an_operation_can_be_given_a_time) {
  Pair pair;
  Worker& worker = pair.job.rank(1).worker();
  int got = 0, value = 8;
  bool done = false;
  const auto receive_twice = [&]() -> Task<void> {
    Operation late = pair.right.recv(Buffer(&got, sizeof(int)));
    const OpResult first = co_await within(worker, late, std::chrono::milliseconds(2));
    EXPECT_EQ(first.status, Status::timed_out);
    co_await sleep_for(worker, std::chrono::milliseconds(1));
    EXPECT_TRUE((co_await pair.left.send(ConstBuffer(&value, sizeof(int)))).ok());
    Operation in_time = pair.right.recv(Buffer(&got, sizeof(int)));
    EXPECT_TRUE((co_await within(worker, in_time, std::chrono::seconds(30))).ok());
    done = true;
  };
  Task<void> task = receive_twice();
  task.start();
  ASSERT_TRUE(pair.job.run_until([&] { return done; }));
  EXPECT_EQ(got, 8);
}

TEST(Channel, a_task_given_up_while_it_waits_leaves_nothing_behind) {
  Pair pair;
  int got = 0, value = 5, other = 0;
  {
    const auto waits = [&]() -> Task<void> {
      Operation receive = pair.right.recv(Buffer(&got, sizeof(int)));
      static_cast<void>(co_await within(pair.job.rank(1).worker(), receive, std::chrono::milliseconds(1)));
    };
    Task<void> task = waits();
    task.start();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  pair.job.run(10);
  Operation receive = pair.right.recv(Buffer(&other, sizeof(int)));
  Operation send = pair.left.send(ConstBuffer(&value, sizeof(int)));
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_EQ(other, 5);
  EXPECT_EQ(got, 0);
}

Status open_status(const std::function<void()>& open) {
  try {
    open();
  } catch (const Error& error) {
    return error.status();
  }
  return Status::ok;
}

TEST(Channel, open_refuses_what_cannot_be) {
  InProcessJob job(test::ranks(3));
  Runtime& runtime = job.rank(0);
  for (const std::uint32_t id : {kChannelIdMax + 1, (1u << 28) - 1, 1u << 28}) {
    EXPECT_EQ(open_status([&] { Channel::open(runtime, Rank{1}, ChannelId{id}); }), Status::invalid_argument);
  }
  try {
    Channel::open(runtime, Rank{1}, ChannelId{(1u << 28) - 1});
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "channel id 268435455 is one of those that brant keeps for channels of its own (251658240 and above): "
                 "use 0 to 251658239");
  }
  EXPECT_EQ(open_status([&] { Channel::open(runtime, Rank{3}, ChannelId{1}); }), Status::invalid_argument);
  EXPECT_EQ(open_status([&] { Channel::open(runtime, Rank{-1}, ChannelId{1}); }), Status::invalid_argument);
  Channel held = Channel::open(runtime, Rank{1}, ChannelId{1});
  EXPECT_EQ(open_status([&] { Channel::open(runtime, Rank{1}, ChannelId{1}); }), Status::invalid_argument);
  EXPECT_EQ(open_status([&] { Channel::open(runtime, Rank{2}, ChannelId{1}); }), Status::invalid_argument);
  Channel one = Channel::open(runtime, Rank{0}, ChannelId{2});
  Channel two = Channel::open(runtime, Rank{0}, ChannelId{2});
  EXPECT_EQ(open_status([&] { Channel::open(runtime, Rank{0}, ChannelId{2}); }), Status::invalid_argument);
}

TEST(Channel, a_third_end_is_refused_at_both_who_could_tell) {
  InProcessJob job(test::ranks(3));
  Channel zero = Channel::open(job.rank(0), Rank{1}, ChannelId{1});
  Channel one = Channel::open(job.rank(1), Rank{0}, ChannelId{1});
  Channel intruder = Channel::open(job.rank(2), Rank{1}, ChannelId{1});
  job.run(50);
  int value = 0;
  Op op;
  EXPECT_EQ(one.post_recv(Buffer(&value, sizeof(int)), op), Status::invalid_argument);
}

// Memory that the host may not touch
// -------------------------------------------------------------------------------------------

void expect_every_kind_to_meet_every_kind(DevicePair& pair) {
  for (const MemoryKind from : {MemoryKind::host, MemoryKind::pinned, MemoryKind::emulated}) {
    for (const MemoryKind to : {MemoryKind::host, MemoryKind::pinned, MemoryKind::emulated}) {
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{5000}, std::size_t{1'000'000}}) {
        const auto sent = pattern(bytes, static_cast<unsigned>(bytes) + 3);
        std::vector<std::byte> got(bytes);
        Memory source = pair.job.rank(0).allocate(from, bytes + 1);
        Memory landing = pair.job.rank(1).allocate(to, bytes + 1);
        pair.job.rank(0).copy(source.part(0, bytes), ConstBuffer(sent.data(), bytes));
        Operation receive = pair.right.recv(landing.part(0, bytes));
        Operation send = pair.left.send(source.part(0, bytes));
        ASSERT_TRUE(pair.outcome(receive).ok())
            << memory_kind_name(from) << " to " << memory_kind_name(to) << ", " << bytes;
        ASSERT_TRUE(pair.outcome(send).ok());
        pair.job.rank(1).copy(Buffer(got.data(), bytes), landing.part(0, bytes));
        EXPECT_EQ(got, sent);
      }
    }
  }
}

TEST(ChannelWithDevice, every_kind_meets_every_kind) {
  DevicePair pair;
  expect_every_kind_to_meet_every_kind(pair);
}

TEST(ChannelWithDevice, every_kind_meets_every_kind_over_a_network_that_takes_device_memory) {
  DevicePair pair(true);
  EXPECT_EQ(*pair.left.path_of(MemoryKind::emulated, 8), JobOptions{}.links ? test::small_mapped_path() : Path::ucx);
  expect_every_kind_to_meet_every_kind(pair);
}

TEST(ChannelWithDevice, a_job_may_end_in_the_middle_of_everything) {
  std::vector<std::byte> host(3'000'000);
  Op send, receive;
  int fired = 0;
  const auto count = [](void* self, const OpResult&) noexcept { ++*static_cast<int*>(self); };
  send.source_free = receive.delivered = {count, &fired};
  DevicePair pair;
  Memory source = pair.job.rank(0).allocate(MemoryKind::emulated, host.size());
  EXPECT_EQ(pair.left.post_send(source, send), Status::in_progress);
  EXPECT_EQ(pair.right.post_recv(std::span(host), receive), Status::in_progress);
  send.detach();
  receive.detach();
  EXPECT_EQ(fired, 0);
}

TEST(ChannelWithDevice, kinds_are_detected_when_not_declared) {
  DevicePair pair;
  Memory source = pair.job.rank(0).allocate(MemoryKind::emulated, 64);
  std::vector<std::byte> got(64);
  const auto sent = pattern(64, 8);
  pair.job.rank(0).copy(source, std::span(sent));
  Operation receive = pair.right.recv(Buffer(got.data(), 64));
  Operation send = pair.left.send(ConstBuffer(source.data(), 64));
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_EQ(got, sent);
}

void expect_refused(Pair& pair, Buffer wrong) {
  Op op;
  EXPECT_EQ(pair.left.post_send(wrong, op), Status::invalid_argument) << wrong.bytes << " bytes at " << wrong.data;
  EXPECT_EQ(pair.left.post_recv(wrong, op), Status::invalid_argument) << wrong.bytes << " bytes at " << wrong.data;
}

void expect_wrong_host_ranges_refused(Pair& pair) {
  int value = 0;
  for (const MemoryKind kind : {MemoryKind::detect, MemoryKind::host, MemoryKind::pinned}) {
    SCOPED_TRACE(memory_kind_name(kind));
    expect_refused(pair, Buffer(nullptr, 8, kind));
    expect_refused(pair, Buffer(&value, ~std::size_t{0}, kind));
    expect_refused(pair, Buffer(reinterpret_cast<void*>(~std::uintptr_t{0} - 15), 17, kind));
    Op op;
    EXPECT_EQ(pair.left.post_send(ConstBuffer(nullptr, 0, kind), op), Status::ok) << "there is nothing to read";
  }
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{100'000}}) {  // private and shared
    const Memory memory = pair.job.rank(0).allocate(MemoryKind::host, bytes);
    for (const MemoryKind kind : {MemoryKind::detect, MemoryKind::host}) {
      expect_refused(pair, Buffer(memory.as<std::byte>() + 16, bytes - 15, kind));
    }
    Operation fits = pair.left.recv(memory.part(16, bytes - 16));
    EXPECT_FALSE(fits.done());
  }
}

TEST(Channel, refuses_host_ranges_that_cannot_be) {
  Pair pair;
  expect_wrong_host_ranges_refused(pair);
}

TEST(ChannelWithDevice, refuses_host_ranges_that_cannot_be) {
  DevicePair pair;
  expect_wrong_host_ranges_refused(pair);
}

TEST(ChannelWithDevice, wrong_declarations_and_freed_memory_are_refused_before_anything_moves) {
  DevicePair pair;
  std::vector<std::byte> host(64);
  Op op;
  EXPECT_EQ(pair.left.post_send(ConstBuffer(host.data(), 64, MemoryKind::emulated), op), Status::wrong_kind);
  EXPECT_EQ(pair.left.post_recv(Buffer(host.data(), 64, MemoryKind::emulated), op), Status::wrong_kind);
  void* freed = nullptr;
  {
    Memory memory = pair.job.rank(0).allocate(MemoryKind::emulated, 64);
    freed = memory.data();
    EXPECT_EQ(pair.left.post_send(ConstBuffer(freed, 100'000, MemoryKind::emulated), op), Status::invalid_argument);
  }
  EXPECT_EQ(pair.left.post_send(ConstBuffer(freed, 64, MemoryKind::emulated), op), Status::wrong_kind);
  EXPECT_EQ(pair.left.counts().sent, 0u);
}

TEST(ChannelWithDevice, a_forced_path_that_cannot_serve_is_an_error_not_a_detour) {
  JobOptions options = DevicePair::options(false);
  options.runtime.path = Path::ucx;
  Pair pair(options);
  Memory source = pair.job.rank(0).allocate(MemoryKind::emulated, 64);
  Op op;
  EXPECT_EQ(pair.left.post_send(source, op), Status::not_supported);
}

}  // namespace
}  // namespace brant
