#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "bench/model/postal.h"

namespace brant::bench::model {

inline constexpr std::size_t kResamples = 1000;

/// The figure with the 2.5th and the 97.5th percentile of what resampled data gave.
inline Figure with_interval(double value, std::vector<double> resampled) {
  if (resampled.empty()) return {value, value, value};
  std::sort(resampled.begin(), resampled.end());
  const auto at = [&](double part) {
    return resampled[static_cast<std::size_t>(std::lround(part * static_cast<double>(resampled.size() - 1)))];
  };
  return {value, std::min(value, at(0.025)), std::max(value, at(0.975))};
}

}  // namespace brant::bench::model
