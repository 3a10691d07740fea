// What a message costs in steady state, counted and not timed: allocations and locks, in this process as a whole, the
// network library included. The memory is declared: asking the CUDA driver for an undeclared kind takes the driver's
// locks.
#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "support/counted_calls.h"

namespace brant {
namespace {

template <typename Body>
test::CallCounts cost_of(Body&& body) {
  test::start_counting();
  body();
  return test::stop_counting();
}

/// What a first time takes (to sleep, to keep a message that came early) is no cost of a message, and on a busy machine
/// it comes at any time: the least of three. Both ranks do the three.
template <typename Body>
test::CallCounts steady_cost_of(Body&& body) {
  test::CallCounts least = cost_of(body);
  for (int again = 0; again < 2; ++again) {
    const test::CallCounts cost = cost_of(body);
    least = {std::min(least.allocations, cost.allocations), std::min(least.locks, cost.locks)};
  }
  return least;
}

void ping_pong(Runtime& runtime, Channel& channel, ConstBuffer sent, Buffer landed, int rounds) {
  const bool first = runtime.rank().value == 0;
  for (int round = 0; round < rounds; ++round) {
    Operation receive = channel.recv(landed);
    const auto wait_for = [&](Operation& operation) {
      ASSERT_EQ(runtime.worker().wait_until([&] { return operation.done(); }, std::chrono::seconds(20)), Status::ok);
    };
    if (!first) wait_for(receive);
    Operation send = channel.send(sent);
    wait_for(send);
    if (first) wait_for(receive);
  }
}

void ping_pong(Runtime& runtime, Channel& channel, std::size_t bytes, int rounds) {
  std::vector<std::byte> sent(bytes), landed(bytes);
  ping_pong(runtime, channel, ConstBuffer(sent.data(), bytes, MemoryKind::host),
            Buffer(landed.data(), bytes, MemoryKind::host), rounds);
}

/// One message in each direction comes before its receive: what is kept of such ones takes memory the first time.
void come_early(Runtime& runtime, Channel& channel, Channel& behind, ConstBuffer sent, Buffer landed) {
  int word = 1, heard = 0;
  const auto wait_for = [&](Operation& operation) {
    ASSERT_EQ(runtime.wait_for(std::chrono::seconds(20), operation).status, Status::ok);
  };
  Operation early = channel.send(sent);
  Operation last = behind.send(ConstBuffer(&word, sizeof(word)));
  Operation there = behind.recv(Buffer(&heard, sizeof(heard)));  // the link keeps the order of both channels
  wait_for(there);
  Operation receive = channel.recv(landed);
  wait_for(receive);
  wait_for(early);
  wait_for(last);
}

TEST(MessageCost, the_counters_count) {
  const test::CallCounts cost = cost_of([] {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    std::vector<int>* made = new std::vector<int>(100);
    delete made;
  });
  EXPECT_GE(cost.allocations, 1u);
  EXPECT_EQ(cost.locks, 1u);
}

TEST(MessageCost, no_allocation_and_no_lock_in_steady_state) {
  Runtime runtime;
  ASSERT_EQ(runtime.size(), 2);
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1024}}) {
    Channel channel =
        Channel::open(runtime, Rank{1 - runtime.rank().value}, ChannelId{static_cast<std::uint32_t>(bytes)});
    ping_pong(runtime, channel, bytes, 2000);
    constexpr int kRounds = 4'000;
    const test::CallCounts cost = steady_cost_of([&] { ping_pong(runtime, channel, bytes, kRounds); });
    // The two buffers of ping_pong itself are the only allocations.
    EXPECT_LE(cost.allocations, 2u) << bytes << " bytes";
    EXPECT_EQ(cost.locks, 0u) << bytes << " bytes";
    const ChannelCounts counts = channel.counts();
    EXPECT_EQ(counts.sent, 14'000u);
    EXPECT_EQ(counts.received, 14'000u);
  }
}

TEST(MessageCost, no_allocation_and_no_lock_for_messages_that_the_receiver_maps) {
  Runtime runtime;
  constexpr std::size_t kBytes = std::size_t{64} << 10;
  const Memory sent = runtime.allocate(MemoryKind::host, kBytes), landed = runtime.allocate(MemoryKind::host, kBytes);
  Channel channel = Channel::open(runtime, Rank{1 - runtime.rank().value}, ChannelId{9});
  if (*channel.path_of(MemoryKind::host, kBytes) != Path::shm) GTEST_SKIP() << "forced to another path";
  Channel behind = Channel::open(runtime, Rank{1 - runtime.rank().value}, ChannelId{10});
  come_early(runtime, channel, behind, sent, landed);
  ping_pong(runtime, channel, sent, landed, 200);
  const test::CallCounts cost = steady_cost_of([&] { ping_pong(runtime, channel, sent, landed, 2000); });
  EXPECT_EQ(cost.allocations, 0u);
  EXPECT_EQ(cost.locks, 0u);
}

/// Within one process, so that no message comes before its receive: what is kept of such ones takes memory.
void stream(Runtime& runtime, Channel& left, Channel& right, Window& sends, Window& receives) {
  static int word = 1, heard = 0;
  for (int message = 0; message < 2000; ++message) {
    ASSERT_TRUE(runtime.wait(receives.slot()).ok());
    receives.add(Moment::delivered,
                 [&](Op& op) noexcept { return right.post_recv(Buffer(&heard, sizeof(heard)), op); });
    ASSERT_TRUE(runtime.wait(sends.slot()).ok());
    sends.add(Moment::source_free,
              [&](Op& op) noexcept { return left.post_send(ConstBuffer(&word, sizeof(word)), op); });
  }
  ASSERT_TRUE(runtime.wait(sends.drain()).ok());
  ASSERT_TRUE(runtime.wait(receives.drain()).ok());
}

TEST(MessageCost, a_window_allocates_where_it_is_made_and_never_again) {
  Runtime runtime;
  Channel left = Channel::open(runtime, runtime.rank(), ChannelId{11});
  Channel right = Channel::open(runtime, runtime.rank(), ChannelId{11});
  Window sends(4), receives(8);
  stream(runtime, left, right, sends, receives);
  const test::CallCounts cost = cost_of([&] { stream(runtime, left, right, sends, receives); });
  EXPECT_EQ(cost.allocations, 0u);
  EXPECT_GE(cost_of([] { Window window(3); }).allocations, 1u);
}

}  // namespace
}  // namespace brant
