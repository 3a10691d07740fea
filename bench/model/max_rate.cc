#include "bench/model/max_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "bench/model/interval.h"
#include "brant/base/status.h"

namespace brant::bench::model {
namespace {

struct Sample {
  double pairs = 1;
  double rate = 0;  ///< Of all pairs together.
};

/// R_Cb + (k - 1) R_Ci up to some number of pairs, R_N above.
struct Curve {
  double first = 0;
  double more = 0;
  double node = std::numeric_limits<double>::infinity();
  double squares = 0;

  [[nodiscard]] double at(double pairs) const { return std::min(node, first + (pairs - 1) * more); }
};

Curve fit_rise(std::span<const Sample> samples) {
  double one = 0, two = 0, ab = 0, bb = 0, b1 = 0;
  for (const Sample& sample : samples) {
    const double a = 1 / sample.rate, b = (sample.pairs - 1) / sample.rate;
    one += a;
    two += a * a;
    ab += a * b;
    bb += b * b;
    b1 += b;
  }
  const double determinant = two * bb - ab * ab;
  Curve curve;
  curve.first = one / two;
  if (determinant > 1e-12 * two * bb && bb > 0) {
    const double first = (one * bb - b1 * ab) / determinant;
    const double more = (two * b1 - ab * one) / determinant;
    if (more > 0 && first > 0) curve = {first, more};
  }
  return curve;
}

double squares_of(std::span<const Sample> samples, const Curve& curve) {
  double sum = 0;
  for (const Sample& sample : samples) {
    const double error = curve.at(sample.pairs) / sample.rate - 1;
    sum += error * error;
  }
  return sum;
}

/// The first `rising` samples are below the cap. All of them: there is none.
Curve fit_curve(std::span<const Sample> samples, std::size_t rising) {
  Curve curve = fit_rise(samples.first(rising));
  if (rising < samples.size()) {
    double one = 0, two = 0;
    for (const Sample& sample : samples.subspan(rising)) {
      one += 1 / sample.rate;
      two += 1 / (sample.rate * sample.rate);
    }
    curve.node = one / two;
  }
  curve.squares = squares_of(samples, curve);
  return curve;
}

/// A cap costs a parameter and its place, and needs two samples below it and two that it holds back.
std::size_t best_rising(std::span<const Sample> samples) {
  const auto count = static_cast<double>(samples.size());
  const auto criterion = [&](std::size_t rising, double parameters) {
    const double mean = std::max(fit_curve(samples, rising).squares / count, kNoiseFloor * kNoiseFloor);
    return count * std::log(mean) + parameters * std::log(count);
  };
  std::size_t best = samples.size();
  double least = criterion(best, 2);
  for (std::size_t rising = 2; rising + 2 <= samples.size(); ++rising) {
    if (const double each = criterion(rising, 4); each < least) {
      least = each;
      best = rising;
    }
  }
  return best;
}

bool is_measurement(const PairsPoint& point, double alpha_us) {
  return point.pairs >= 1 && std::isfinite(point.bytes) && std::isfinite(point.us) && point.bytes > 0 &&
         point.us > alpha_us;
}

std::vector<Sample> rates_of(const std::vector<PairsPoint>& points, double alpha_us) {
  std::vector<Sample> samples;
  for (const PairsPoint& point : points) {
    if (!is_measurement(point, alpha_us)) {
      throw Error(Status::invalid_argument,
                  fmt::format("{} pairs with {} bytes in {} us is no measurement beside a latency of {} us",
                              point.pairs, point.bytes, point.us, alpha_us));
    }
    samples.push_back({static_cast<double>(point.pairs), point.pairs * point.bytes / (point.us - alpha_us) / 1e3});
  }
  std::stable_sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.pairs < b.pairs; });
  if (samples.empty() || samples.front().pairs != 1) {
    throw Error(Status::invalid_argument, "nothing was measured of one pair alone");
  }
  return samples;
}

}  // namespace

double MaxRate::us(double pairs, double bytes) const {
  if (pairs > 1 && !rates.more) {
    throw Error(Status::invalid_argument, "what several pairs take at once was not measured: only one pair was there");
  }
  double rate = rates.first.value + (pairs > 1 ? (pairs - 1) * rates.more->value : 0);
  if (rates.node) rate = std::min(rate, rates.node->value);
  return alpha_us + pairs * bytes / rate / 1e3;
}

double kappa(double pairs, double messages_off_node, double messages) {
  if (!(messages > 0) || messages_off_node < 0 || messages_off_node > messages || !(pairs > 0)) {
    throw Error(Status::invalid_argument, fmt::format("{} of {} messages of {} processes cannot leave a node",
                                                      messages_off_node, messages, pairs));
  }
  return pairs * messages_off_node / messages;
}

double best_rate(const std::vector<PairsPoint>& points) {
  double best = 0;
  for (const PairsPoint& point : points) {
    if (point.pairs == 1 && is_measurement(point, 0)) best = std::max(best, point.bytes / point.us / 1e3);
  }
  return best;
}

MaxRate fit_max_rate(const std::vector<PairsPoint>& points, double alpha_us) {
  const std::vector<Sample> samples = rates_of(points, alpha_us);
  const std::size_t rising = best_rising(samples);
  const Curve curve = fit_curve(samples, rising);
  std::vector<double> errors;
  errors.reserve(samples.size());
  for (const Sample& sample : samples) errors.push_back(sample.rate / curve.at(sample.pairs) - 1);
  std::mt19937 random(1);
  std::uniform_int_distribution<std::size_t> any(0, errors.size() - 1);
  std::vector<double> firsts, mores, nodes;
  for (std::size_t i = 0; i < kResamples; ++i) {
    std::vector<Sample> resampled = samples;
    for (Sample& sample : resampled) sample.rate = curve.at(sample.pairs) * std::max(1 + errors[any(random)], 0.01);
    const Curve again = fit_curve(resampled, rising);
    firsts.push_back(again.first);
    mores.push_back(again.more);
    nodes.push_back(again.node);
  }
  MaxRate fit{alpha_us, {.first = with_interval(curve.first, std::move(firsts)), .more = {}, .node = {}}};
  if (samples.back().pairs > 1) fit.rates.more = with_interval(curve.more, std::move(mores));
  if (rising < samples.size()) fit.rates.node = with_interval(curve.node, std::move(nodes));
  fit.residual = std::sqrt(curve.squares / static_cast<double>(samples.size()));
  if (fit.residual > kResidualMax) {
    throw Error(Status::not_supported,
                fmt::format("the rates of several pairs are missed by {:.0f} %, more than {:.0f}", 100 * fit.residual,
                            100 * kResidualMax));
  }
  return fit;
}

}  // namespace brant::bench::model
