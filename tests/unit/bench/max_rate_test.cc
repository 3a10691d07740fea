#include "bench/model/max_rate.h"

#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "brant/base/status.h"

namespace brant::bench::model {
namespace {

constexpr double kBytes = 4 << 20;

/// 18 GB/s of one pair, 12 more of each further one, 45 at most.
std::vector<PairsPoint> node(int pairs, double noise) {
  std::mt19937 random(3);
  std::normal_distribution<double> error(0, noise);
  std::vector<PairsPoint> points;
  for (int k = 1; k <= pairs; ++k) {
    const double rate = std::min(45.0, 18.0 + 12.0 * (k - 1));
    for (int i = 0; i < 3; ++i) points.push_back({k, kBytes, (10.6 + k * kBytes / rate / 1e3) * (1 + error(random))});
  }
  return points;
}

Status status_of(const std::vector<PairsPoint>& points) {
  try {
    static_cast<void>(fit_max_rate(points, 10.6));
  } catch (const Error& fault) {
    return fault.status();
  }
  return Status::ok;
}

TEST(MaxRateFit, the_rates_of_a_pair_of_more_and_of_the_node_are_found_again) {
  const MaxRate fit = fit_max_rate(node(8, 0.02), 10.6);
  EXPECT_NEAR(fit.rates.first.value, 18, 1);
  ASSERT_TRUE(fit.rates.more && fit.rates.node);
  EXPECT_NEAR(fit.rates.more->value, 12, 1.5);
  EXPECT_NEAR(fit.rates.node->value, 45, 1);
  EXPECT_LT(fit.rates.node->low, 45);
  EXPECT_GT(fit.rates.node->high, 44);
  EXPECT_NEAR(fit.us(8, kBytes), 10.6 + 8 * kBytes / 45e3, 0.03 * 8 * kBytes / 45e3) << "the node holds them back";
}

TEST(MaxRateFit, without_a_knee_there_is_no_cap) {
  const MaxRate fit = fit_max_rate(node(3, 0.01), 10.6);
  EXPECT_FALSE(fit.rates.node);
  EXPECT_NEAR(fit.rates.more->value, 12, 1);
}

TEST(MaxRateFit, one_pair_alone_says_nothing_of_more) {
  const MaxRate fit = fit_max_rate(node(1, 0.01), 10.6);
  EXPECT_NEAR(fit.rates.first.value, 18, 0.5);
  EXPECT_FALSE(fit.rates.more || fit.rates.node);
  EXPECT_NEAR(fit.us(1, kBytes), 10.6 + kBytes / 18e3, 10);
  EXPECT_THROW(static_cast<void>(fit.us(2, kBytes)), Error);
}

TEST(MaxRateFit, pairs_that_only_share_add_nothing) {
  const MaxRate fit = fit_max_rate({{1, kBytes, 300}, {2, kBytes, 600}, {3, kBytes, 900}}, 10);
  EXPECT_NEAR(fit.rates.more->value, 0, 0.3);
}

TEST(MaxRateFit, what_is_no_measurement_is_refused) {
  EXPECT_EQ(status_of({}), Status::invalid_argument);
  EXPECT_EQ(status_of({{2, kBytes, 300}}), Status::invalid_argument) << "nothing of one pair";
  EXPECT_EQ(status_of({{1, kBytes, 10}}), Status::invalid_argument) << "less than the latency";
  EXPECT_EQ(status_of({{1, kBytes, std::numeric_limits<double>::quiet_NaN()}}), Status::invalid_argument);
  EXPECT_EQ(status_of({{1, kBytes, 100}, {1, kBytes, 200}}), Status::not_supported);
}

TEST(MaxRateFit, the_best_rate_is_of_one_pair_and_of_a_measurement) {
  EXPECT_EQ(best_rate({{1, 8e6, 1000}, {1, 8e6, 800}, {2, 8e6, 100}}), 10);
  EXPECT_EQ(best_rate({{1, 8e6, 0}, {1, 8e6, std::numeric_limits<double>::quiet_NaN()}}), 0);
  EXPECT_EQ(best_rate({}), 0);
}

TEST(KModel, those_that_leave_the_node_share_its_rate) {
  // The paper: 4 processes of a node with 26 messages each, 24 of them to other nodes.
  const double k = kappa(4, 24, 26);
  EXPECT_NEAR(k, 3.692, 0.001);
  MaxRate rendezvous{10.6, {.first = {17.9, 17.9, 17.9}, .more = Figure{22.2, 22.2, 22.2}, .node = {}}};
  EXPECT_NEAR(rendezvous.us(k, 60'000), 13.5, 0.1) << "without the cap, as the paper has it";
  rendezvous.rates.node = Figure{25, 25, 25};
  EXPECT_NEAR(rendezvous.us(k, 60'000), 19.5, 0.1);
  EXPECT_NEAR(rendezvous.us(k, 960'000), 152, 1);
  EXPECT_THROW(static_cast<void>(kappa(4, 27, 26)), Error);
}

}  // namespace
}  // namespace brant::bench::model
