#pragma once

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "support/in_process_job.h"

/// Two ends of a channel whose processes share memory, for the tests of what they agree upon over the link.
namespace brant::test {

inline constexpr std::size_t kLarge = 1'000'000;  // more than the ring holds; with path shm forced, as in these tests

inline std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>((i * 31 + seed * 17 + (i >> 8)) & 0xff);
  return data;
}

inline JobOptions linked(GpuChoice gpu = GpuChoice::none) {
  JobOptions options;
  options.links = true;
  options.gpu = gpu;
  if (gpu == GpuChoice::none) options.runtime.path = Path::shm;
  return options;
}

struct Pair {
  explicit Pair(const JobOptions& options = linked())
      : job(options),
        left(Channel::open(job.rank(0), Rank{1}, ChannelId{7})),
        right(Channel::open(job.rank(1), Rank{0}, ChannelId{7})) {}

  OpResult outcome(const Operation& operation) {
    EXPECT_TRUE(job.run_until([&] { return operation.done(); })) << "never completed";
    return operation.done() ? operation.result() : OpResult{Status::timed_out, 0};
  }
  /// Lets one rank alone make progress.
  void run(int rank, int rounds) {
    for (int round = 0; round < rounds; ++round) job.rank(rank).worker().progress();
  }

  InProcessJob job;
  Channel left;
  Channel right;
};

}  // namespace brant::test
