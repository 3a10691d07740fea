#include "bench/model/postal.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "bench/model/interval.h"
#include "brant/base/status.h"

namespace brant::bench::model {
namespace {

constexpr double kParametersPerSegment = 3;  // alpha, beta, and where it ends

struct Line {
  double alpha = 0;
  double beta = 0;
  double squares = 0;  ///< Of the relative errors.
};

double squares_of(std::span<const Point> points, double alpha, double beta) {
  double sum = 0;
  for (const Point& point : points) {
    const double error = (alpha + beta * point.bytes) / point.us - 1;
    sum += error * error;
  }
  return sum;
}

/// Least squares of (alpha + beta n) / t - 1. Where the best line has a negative part, the best one without it lies on
/// the border, with that part 0.
Line fit_line(std::span<const Point> points) {
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (const auto& [bytes, us] : points) {
    const double a = 1 / us, b = bytes / us;
    aa += a * a;
    ab += a * b;
    bb += b * b;
    a1 += a;
    b1 += b;
  }
  const double determinant = aa * bb - ab * ab;
  double alpha = a1 / aa, beta = 0;
  if (determinant > 1e-12 * aa * bb) {
    alpha = (a1 * bb - b1 * ab) / determinant;
    beta = (aa * b1 - ab * a1) / determinant;
    if (beta < 0) {
      alpha = a1 / aa;
      beta = 0;
    } else if (alpha < 0) {
      alpha = 0;
      beta = b1 / bb;
    }
  }
  return {alpha, beta, squares_of(points, alpha, beta)};
}

void require_sound(const std::vector<Point>& points) {
  if (points.size() < kSegmentPointsMin) {
    throw Error(Status::invalid_argument,
                fmt::format("{} points are too few for a line: {} are needed", points.size(), kSegmentPointsMin));
  }
  for (const Point& point : points) {
    if (!(std::isfinite(point.bytes) && std::isfinite(point.us) && point.bytes > 0 && point.us > 0)) {
      throw Error(Status::invalid_argument,
                  fmt::format("{} us for {} bytes is no measurement: both must be positive", point.us, point.bytes));
    }
  }
}

/// Of what is sorted.
void require_different(const std::vector<Point>& points) {
  const auto twice = std::adjacent_find(points.begin(), points.end(),
                                        [](const Point& a, const Point& b) { return a.bytes == b.bytes; });
  if (twice != points.end()) {
    throw Error(Status::invalid_argument, fmt::format("{} bytes are there twice", twice->bytes));
  }
}

/// Where the segments end: dynamic programming gives the best ends for each number of segments, the criterion chooses
/// the number.
std::vector<std::size_t> best_ends(const std::vector<Point>& points) {
  const std::size_t n = points.size();
  const std::size_t most = std::max<std::size_t>(1, std::min(kSegmentsMax, (n - 1) / kSegmentPointsMin));
  const double none = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> least(most + 1, std::vector<double>(n + 1, none));
  std::vector<std::vector<std::size_t>> from(most + 1, std::vector<std::size_t>(n + 1, 0));
  least[0][0] = 0;
  for (std::size_t begin = 0; begin < n; ++begin) {
    for (std::size_t end = begin + kSegmentPointsMin; end <= n; ++end) {
      const double squares = fit_line(std::span(points).subspan(begin, end - begin)).squares;
      for (std::size_t k = 1; k <= most; ++k) {
        if (least[k - 1][begin] + squares >= least[k][end]) continue;
        least[k][end] = least[k - 1][begin] + squares;
        from[k][end] = begin;
      }
    }
  }
  const auto count = static_cast<double>(n);
  double best = none;
  std::size_t segments = 1;
  bool describes = false;  // What misses by too much gives way to more segments that do not, whatever they cost.
  for (std::size_t k = 1; k <= most; ++k) {
    const double parameters = kParametersPerSegment * static_cast<double>(k);
    // Of so few points the parameters take a part of the noise: what is left is divided by what is free.
    const double free = std::max(count - parameters, 1.0);
    const double variance = std::max(least[k][n] / free, kNoiseFloor * kNoiseFloor);
    const double criterion = count * std::log(variance) + parameters * std::log(count);
    const bool close = least[k][n] <= kResidualMax * kResidualMax * count;
    if (describes && !close) continue;
    if (criterion >= best && close == describes) continue;
    describes = close;
    best = criterion;
    segments = k;
  }
  std::vector<std::size_t> ends;
  for (std::size_t end = n, k = segments; k > 0; end = from[k--][end]) ends.push_back(end);
  std::reverse(ends.begin(), ends.end());
  return ends;
}

/// The line with intervals: its relative errors are dealt out anew, widened by the two parameters that they lack.
Postal with_intervals(std::span<const Point> points, const Line& line, std::mt19937& random) {
  const auto count = static_cast<double>(points.size());
  const double widened = std::sqrt(count / (count - 2));
  std::vector<double> errors;
  for (const Point& point : points) errors.push_back(widened * (point.us / (line.alpha + line.beta * point.bytes) - 1));
  std::vector<double> alphas, betas;
  std::uniform_int_distribution<std::size_t> any(0, errors.size() - 1);
  std::vector<Point> resampled(points.begin(), points.end());
  for (std::size_t i = 0; i < kResamples; ++i) {
    for (Point& point : resampled) {
      point.us = (line.alpha + line.beta * point.bytes) * std::max(1 + errors[any(random)], 0.01);
    }
    const Line again = fit_line(resampled);
    alphas.push_back(again.alpha);
    betas.push_back(again.beta);
  }
  return {with_interval(line.alpha, std::move(alphas)), with_interval(line.beta, std::move(betas))};
}

double squares_of_constant(const std::vector<Point>& points) {
  double one = 0, two = 0;
  for (const Point& point : points) {
    one += 1 / point.us;
    two += 1 / (point.us * point.us);
  }
  return squares_of(points, one / two, 0);
}

}  // namespace

const Postal& PiecewisePostal::at(double bytes) const {
  const auto found =
      std::find_if(segments.begin(), segments.end(), [&](const Postal& each) { return bytes <= each.up_to; });
  return found == segments.end() ? segments.back() : *found;
}

double PiecewisePostal::us(double bytes) const {
  const Postal& segment = at(bytes);
  return segment.alpha_us.value + segment.us_per_byte.value * bytes;
}

PiecewisePostal fit_postal(std::vector<Point> points) {
  require_sound(points);  // what is no number has no order
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.bytes < b.bytes; });
  require_different(points);
  std::mt19937 random(1);
  PiecewisePostal fit;
  double squares = 0;
  std::size_t begin = 0;
  for (const std::size_t end : best_ends(points)) {
    const auto part = std::span<const Point>(points).subspan(begin, end - begin);
    const Line line = fit_line(part);
    squares += line.squares;
    fit.segments.push_back(with_intervals(part, line, random));
    if (end < points.size()) fit.segments.back().up_to = std::sqrt(points[end - 1].bytes * points[end].bytes);
    begin = end;
  }
  fit.residual = std::sqrt(squares / static_cast<double>(points.size()));
  const double constant = squares_of_constant(points);
  fit.r2 = constant > 1e-12 ? 1 - squares / constant : 1;
  if (fit.residual > kResidualMax) {
    throw Error(Status::not_supported,
                fmt::format("the best lines miss the times by {:.0f} %, more than {:.0f}: measure again in a quiet "
                            "moment",
                            100 * fit.residual, 100 * kResidualMax));
  }
  return fit;
}

}  // namespace brant::bench::model
