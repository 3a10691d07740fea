#include "bench/runner/statistics.h"

#include <gtest/gtest.h>

namespace brant::bench {
namespace {

TEST(BenchStatistics, nothing_gives_nothing) {
  std::vector<double> none;
  const Summary summary = summarize(none);
  EXPECT_EQ(summary.n, 0u);
  EXPECT_EQ(summary.p99, 0);
}

TEST(BenchStatistics, one_sample_is_every_percentile) {
  std::vector<double> one = {3.5};
  const Summary summary = summarize(one);
  EXPECT_EQ(summary.n, 1u);
  EXPECT_EQ(summary.min, 3.5);
  EXPECT_EQ(summary.p50, 3.5);
  EXPECT_EQ(summary.p99, 3.5);
}

TEST(BenchStatistics, percentiles_are_by_nearest_rank_whatever_the_order) {
  std::vector<double> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(i);
  const Summary summary = summarize(samples);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.p50, 50);
  EXPECT_EQ(summary.p99, 99);
}

}  // namespace
}  // namespace brant::bench
