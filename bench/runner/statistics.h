#pragma once

#include <cstddef>
#include <vector>

namespace brant::bench {

/// Of a set of samples, in their unit.
struct Summary {
  std::size_t n = 0;
  double min = 0;
  double p50 = 0;
  double p99 = 0;
  double max = 0;
};

/// Percentiles by nearest rank: each is one of the samples. Reorders them. All zero for none.
Summary summarize(std::vector<double>& samples);

}  // namespace brant::bench
