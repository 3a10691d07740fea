#include "bench/model/postal.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "brant/base/status.h"

namespace brant::bench::model {
namespace {

/// 2.4 us and 5 GB/s up to 8 KB, 10.6 us and 24 GB/s above, with normal noise of so much.
std::vector<Point> two_protocols(double noise, unsigned seed = 7) {
  std::mt19937 random(seed);
  std::normal_distribution<double> error(0, noise);
  std::vector<Point> points;
  for (double bytes = 8; bytes <= 16 << 20; bytes *= 2) {
    const double us = bytes <= 8192 ? 2.4 + bytes / 5e3 : 10.6 + bytes / 24e3;
    points.push_back({bytes, us * (1 + error(random))});
  }
  return points;
}

Status status_of(std::vector<Point> points) {
  try {
    static_cast<void>(fit_postal(std::move(points)));
  } catch (const Error& fault) {
    return fault.status();
  }
  return Status::ok;
}

TEST(PostalFit, two_protocols_are_found_again_under_noise) {
  const PiecewisePostal fit = fit_postal(two_protocols(0.02));
  ASSERT_EQ(fit.segments.size(), 2u);
  const auto& [eager, rendezvous] = std::pair(fit.segments[0], fit.segments[1]);
  EXPECT_NEAR(eager.alpha_us.value, 2.4, 0.1);
  EXPECT_NEAR(1e-3 / eager.us_per_byte.value, 5, 0.4);
  EXPECT_NEAR(rendezvous.alpha_us.value, 10.6, 0.6);
  EXPECT_NEAR(1e-3 / rendezvous.us_per_byte.value, 24, 1.2);
  EXPECT_GT(eager.up_to, 8192);
  EXPECT_LT(eager.up_to, 16384);
  EXPECT_GT(fit.r2, 0.99);
  EXPECT_LT(fit.residual, 0.03);
}

TEST(PostalFit, the_intervals_mostly_hold_what_is_true) {
  constexpr int kTimes = 60;
  int held = 0, two = 0;
  for (unsigned seed = 1; seed <= kTimes; ++seed) {
    const PiecewisePostal fit = fit_postal(two_protocols(0.02, seed));
    two += fit.segments.size() == 2 ? 1 : 0;
    const Figure& alpha = fit.segments.front().alpha_us;
    held += alpha.low <= 2.4 && 2.4 <= alpha.high ? 1 : 0;
  }
  EXPECT_GE(held, kTimes * 85 / 100);
  EXPECT_LT(held, kTimes) << "so wide that they say nothing";
  EXPECT_GE(two, kTimes * 85 / 100);
}

TEST(PostalFit, the_intervals_grow_with_noise) {
  const auto width = [](double noise) {
    const Figure alpha = fit_postal(two_protocols(noise)).segments.front().alpha_us;
    return (alpha.high - alpha.low) / alpha.value;
  };
  EXPECT_GT(width(0.04), 1.5 * width(0.01));
}

TEST(PostalFit, a_line_without_noise_is_one_segment_and_exact) {
  std::vector<Point> points;
  for (double bytes = 8; bytes < 1e6; bytes *= 2) points.push_back({bytes, 3 + bytes / 1e4});
  const PiecewisePostal fit = fit_postal(points);
  ASSERT_EQ(fit.segments.size(), 1u);
  EXPECT_NEAR(fit.segments[0].alpha_us.value, 3, 1e-9);
  EXPECT_NEAR(fit.us(12345), 3 + 1.2345, 1e-9);
}

TEST(PostalFit, what_costs_the_same_at_any_size_has_no_beta) {
  std::vector<Point> points;
  for (double bytes = 8; bytes < 1e6; bytes *= 2) points.push_back({bytes, 5});
  const PiecewisePostal fit = fit_postal(points);
  ASSERT_EQ(fit.segments.size(), 1u);
  EXPECT_NEAR(fit.segments[0].alpha_us.value, 5, 1e-9);
  EXPECT_NEAR(fit.segments[0].us_per_byte.value, 0, 1e-12);
  EXPECT_EQ(fit.r2, 1);
}

TEST(PostalFit, a_slope_that_would_be_negative_is_none) {
  const PiecewisePostal fit = fit_postal({{8, 1.05}, {16, 1.02}, {32, 1.0}, {64, 0.98}});
  EXPECT_EQ(fit.segments.size(), 1u);
  EXPECT_EQ(fit.segments[0].us_per_byte.value, 0);
  EXPECT_NEAR(fit.segments[0].alpha_us.value, 1.01, 0.02);
}

TEST(PostalFit, a_segment_has_three_points_at_least) {
  const auto fit = fit_postal({{8, 1}, {16, 1}, {32, 1}, {64, 1}, {128, 1.3}});
  EXPECT_EQ(fit.segments.size(), 1u) << "five points are not enough for two segments";
}

TEST(PostalFit, what_is_no_measurement_is_refused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(status_of({}), Status::invalid_argument);
  EXPECT_EQ(status_of({{8, 1}, {16, 1}}), Status::invalid_argument);
  EXPECT_EQ(status_of({{8, 1}, {16, nan}, {32, 1}}), Status::invalid_argument);
  EXPECT_EQ(status_of({{8, 1}, {nan, 1}, {32, 1}}), Status::invalid_argument);
  EXPECT_EQ(status_of({{8, 1}, {16, 0}, {32, 1}}), Status::invalid_argument);
  EXPECT_EQ(status_of({{8, 1}, {8, 1}, {32, 1}}), Status::invalid_argument);
  EXPECT_EQ(status_of({{8, 1}, {16, std::numeric_limits<double>::infinity()}, {32, 1}}), Status::invalid_argument);
}

TEST(PostalFit, few_points_of_several_protocols_get_the_segments_that_they_need) {
  std::vector<Point> points;
  double us = 1;
  for (int i = 0; i < 12; ++i) points.push_back({8192.0 * (1 << i), i % 4 == 0 ? us *= 3 : us *= 1.02});
  const PiecewisePostal fit = fit_postal(points);
  EXPECT_EQ(fit.segments.size(), 3u);
  EXPECT_LE(fit.residual, kResidualMax);
}

TEST(PostalFit, a_model_that_misses_by_more_than_15_percent_is_refused) {
  EXPECT_EQ(status_of({{8, 1}, {16, 3}, {32, 1}, {64, 3}, {128, 1}}), Status::not_supported);
}

}  // namespace
}  // namespace brant::bench::model
