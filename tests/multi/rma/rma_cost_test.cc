// What puts, gets and atomics cost in steady state, counted and not timed: allocations and locks of the one who makes
// them, the network library included.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "support/counted_calls.h"

namespace brant {
namespace {

/// Awaited one after the other, and in windows.
void put_and_get(Runtime& runtime, RemoteSegment& there, Buffer local, Path path, int rounds, std::vector<Op>& ops) {
  for (int round = 0; round < rounds; ++round) {
    for (const RmaDirection direction : {RmaDirection::put, RmaDirection::get}) {
      Counter counter;
      for (Op& op : ops) {
        op.delivered = counter.sink();
        counter.track(direction == RmaDirection::put ? there.post_put(0, local, op, {.path = path})
                                                     : there.post_get(0, local, op, {.path = path}),
                      op);
      }
      ASSERT_EQ(runtime.worker().wait_until([&] { return counter.pending() == 0; }, std::chrono::seconds(20)),
                Status::ok);
      ASSERT_TRUE(counter.result().ok());
    }
  }
}

void count(Runtime& runtime, RemoteSegment& there, Path path, int rounds, std::vector<Op>& ops) {
  std::vector<std::uint64_t> told(ops.size());
  for (int round = 0; round < rounds; ++round) {
    Counter counter;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      ops[i].delivered = counter.sink();
      counter.track(there.post_atomic(0, Atomic::of<std::uint64_t>(AtomicOp::add, 1), ops[i], &told[i], path), ops[i]);
    }
    ASSERT_EQ(runtime.worker().wait_until([&] { return counter.pending() == 0; }, std::chrono::seconds(20)),
              Status::ok);
    ASSERT_TRUE(counter.result().ok());
  }
}

TEST(RmaCost, no_allocation_and_no_lock_in_steady_state) {
  Runtime runtime;
  ASSERT_EQ(runtime.size(), 2);
  const Rank other{1 - runtime.rank().value};
  Channel channel = Channel::open(runtime, other, ChannelId{1});
  const Memory memory = runtime.allocate(MemoryKind::host, 1 << 20),
               local = runtime.allocate(MemoryKind::host, 1 << 20);
  const Segment segment = expose(runtime, memory);
  SegmentTicket own = segment.ticket(), ticket;
  const auto swap = [&](Buffer in, ConstBuffer out) {
    Operation receive = channel.recv(in), send = channel.send(out);
    ASSERT_EQ(runtime.worker().wait_until([&] { return receive.done() && send.done(); }, std::chrono::seconds(20)),
              Status::ok);
  };
  swap(Buffer(&ticket, sizeof(ticket)), ConstBuffer(&own, sizeof(own)));
  // Rank 0 alone counts: a message of the other end must not come meanwhile.
  if (runtime.rank().value == 0) {
    RemoteSegment there(runtime, other, ticket);
    std::vector<Op> ops(16);
    for (const Path path : {Path::shm, Path::ucx}) {
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{600'000}}) {
        const Buffer part = local.part(0, bytes);
        const int rounds = bytes == 8 ? 1000 : 30;
        put_and_get(runtime, there, part, path, rounds, ops);
        test::start_counting();
        put_and_get(runtime, there, part, path, rounds, ops);
        const test::CallCounts cost = test::stop_counting();
        EXPECT_EQ(cost.allocations, 0u) << path_name(path) << " " << bytes;
        EXPECT_EQ(cost.locks, 0u) << path_name(path) << " " << bytes;
      }
      count(runtime, there, path, 500, ops);
      test::start_counting();
      count(runtime, there, path, 1, ops);
      const test::CallCounts one = test::stop_counting();
      test::start_counting();
      count(runtime, there, path, 500, ops);
      const test::CallCounts many = test::stop_counting();
      EXPECT_EQ(many.allocations, one.allocations) << "atomics by " << path_name(path);
      EXPECT_EQ(many.locks, 0u) << "atomics by " << path_name(path);
    }
  }
  swap(Buffer(&ticket, sizeof(ticket)), ConstBuffer(&own, sizeof(own)));
}

}  // namespace
}  // namespace brant
