#include "bench/runner/statistics.h"

#include <algorithm>
#include <cmath>

namespace brant::bench {

Summary summarize(std::vector<double>& samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto percentile = [&](double part) {
    const double rank = std::ceil(part * static_cast<double>(samples.size()));
    return samples[std::max<std::size_t>(static_cast<std::size_t>(rank), 1) - 1];
  };
  return {samples.size(), samples.front(), percentile(0.50), percentile(0.99), samples.back()};
}

}  // namespace brant::bench
