#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "support/grounds.h"
#include "support/in_process_job.h"

/// Two ends of a channel whose processes share memory, for the tests of what they agree upon over the link.
namespace brant::test {

inline constexpr std::size_t kLarge = 1'000'000;  // more than the ring holds; with path shm forced, as in these tests

inline JobOptions linked(GpuChoice gpu = GpuChoice::none) {
  JobOptions options;
  options.links = true;
  options.gpu = gpu;
  if (gpu == GpuChoice::none) options.runtime.path = Path::shm;
  return options;
}

struct Pair {
  explicit Pair(const JobOptions& options = linked())
      : right_rank(options.ranks == 1 ? 0 : 1),
        job(options),
        left(Channel::open(job.rank(0), Rank{right_rank}, ChannelId{7})),
        right(Channel::open(job.rank(right_rank), Rank{0}, ChannelId{7})) {}

  OpResult outcome(const Operation& operation) { return job.outcome(operation); }
  /// Lets one rank alone make progress.
  void run(int rank, int rounds) {
    for (int round = 0; round < rounds; ++round) job.rank(rank).worker().progress();
  }

  const int right_rank;  ///< 0 if both ends are of one process.
  InProcessJob job;
  Channel left;
  Channel right;
};

/// The same with device memory that each end can map of the other.
struct MappedPair : Pair {
  explicit MappedPair(const JobOptions& options = linked(GpuChoice::emulated)) : Pair(options) {}
  Memory filled(int rank, const std::vector<std::byte>& bytes) {
    Memory memory = job.rank(rank).allocate(MemoryKind::emulated, bytes.size());
    job.rank(rank).copy(memory, std::span(bytes));
    return memory;
  }
  std::vector<std::byte> contents(int rank, const Memory& memory) {
    std::vector<std::byte> bytes(memory.bytes());
    job.rank(rank).copy(std::span(bytes), memory);
    return bytes;
  }
};

/// A message of `kLarge` bytes that waits at the left end is received whole at the right one.
inline void expect_received(Pair& pair, Operation& send, const std::vector<std::byte>& sent) {
  std::vector<std::byte> landed(kLarge);
  Operation receive = pair.right.recv(std::span(landed));
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_EQ(landed, sent);
}

/// Whatever happened before: the next small message finds its receive.
inline void expect_order_goes_on(Pair& pair) {
  const int value = 5;
  int got = 0;
  Operation receive = pair.right.recv(Buffer(&got, sizeof(got)));
  Operation send = pair.left.send(ConstBuffer(&value, sizeof(value)));
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_EQ(got, 5);
}

/// Sends `sent`, of `kLarge` bytes, into receives that are too small: almost large enough, which are announced, and so
/// small that the sender has to ask; posted before the send and after it.
inline void expect_truncated_at_both_ends(Pair& pair, ConstBuffer sent) {
  for (const bool receive_first : {true, false}) {
    for (const std::size_t room : {kLarge - 1, std::size_t{100}}) {
      SCOPED_TRACE(receive_first ? "receive first" : "send first");
      std::vector<std::byte> landed(room + 1, std::byte{0xee});
      std::unique_ptr<Operation> receive;
      if (receive_first) receive.reset(new Operation(pair.right.recv(Buffer(landed.data(), room))));
      pair.job.run(5);
      Operation send = pair.left.send(sent, Moment::delivered);
      if (!receive_first) receive.reset(new Operation(pair.right.recv(Buffer(landed.data(), room))));
      EXPECT_EQ(pair.outcome(*receive).status, Status::truncated);
      EXPECT_EQ(receive->result().bytes, kLarge);
      EXPECT_EQ(pair.outcome(send).status, Status::truncated);
      EXPECT_EQ(landed[room], std::byte{0xee}) << "written beyond the room of " << room;
    }
  }
  EXPECT_EQ(pair.left.counts().truncated, 4u);
  expect_order_goes_on(pair);
}

}  // namespace brant::test
