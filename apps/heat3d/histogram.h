#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heat {

/// The latency of a step, looked at over two steps: a process that gets its ghosts late in one step is as much early in
/// the next, so single steps say more of who waited for whom than of what a step takes. In microseconds.
struct Latency {
  std::vector<double> windows;  ///< The mean of each two neighbouring steps, ascending.
  double p50 = 0.0;
  double p99 = 0.0;

  /// Of the times of all steps, two at least.
  explicit Latency(std::span<const double> steps);

  [[nodiscard]] double spread() const noexcept { return p99 / p50; }
};

/// How many windows lie in each of some bins of one width.
struct Histogram {
  double from = 0.0;  ///< Where the first bin begins.
  double bin = 0.0;   ///< Microseconds of each.
  std::vector<std::int64_t> counts;
  std::int64_t beyond = 0;  ///< Behind the last bin.

  explicit Histogram(const Latency& latency);
  /// A line for each bin, the median marked.
  [[nodiscard]] std::string bars(double median) const;
};

}  // namespace heat
