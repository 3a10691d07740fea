#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace brant::bench::model {

/// Relative errors below a tenth of a percent are no noise that more parameters would explain.
inline constexpr double kNoiseFloor = 1e-3;

/// What a message of so many bytes took.
struct Point {
  double bytes = 0;
  double us = 0;
};

/// A figure with the range in which it lies with 95 % probability.
struct Figure {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// T(n) = alpha + n beta, of messages up to `up_to` bytes: one protocol of a path.
struct Postal {
  Figure alpha_us;
  Figure us_per_byte;
  double up_to = std::numeric_limits<double>::infinity();
};

/// A path: protocols that follow each other as messages grow.
struct PiecewisePostal {
  std::vector<Postal> segments;  ///< By size; the last one has no end.
  double r2 = 0;                 ///< Of relative errors: 1 explains everything, 0 as much as one time for all sizes.
  double residual = 0;           ///< Root mean square of the relative errors.

  [[nodiscard]] const Postal& at(double bytes) const;
  [[nodiscard]] double us(double bytes) const;
};

inline constexpr std::size_t kSegmentPointsMin = 3;
inline constexpr std::size_t kSegmentsMax = 6;
inline constexpr double kResidualMax = 0.15;

/// Segments of at least three points each, as many as the Bayesian information criterion pays for, so that relative
/// errors are least; alpha and beta are never negative. Intervals are of resampled residuals, by a fixed seed. Throws
/// Error invalid_argument: fewer than three points, a size or time that is no positive number, a size that is there
/// twice; and `not_supported` when the residual is above 15 %: the model does not describe what was measured.
PiecewisePostal fit_postal(std::vector<Point> points);

}  // namespace brant::bench::model
