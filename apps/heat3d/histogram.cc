#include "histogram.h"

#include <algorithm>

#include <fmt/format.h>

#include "row.h"

namespace heat {
namespace {

constexpr std::size_t kBins = 24;
constexpr double kBeyondP99 = 1.1;  // what a bin can be widened by to have 99 of 100 windows in sight
constexpr std::int64_t kBarMax = 60;

std::vector<double> windows_of(std::span<const double> steps) {
  std::vector<double> windows;
  windows.reserve(steps.size() - 1);
  for (std::size_t i = 1; i < steps.size(); ++i) windows.push_back((steps[i - 1] + steps[i]) / 2);
  std::sort(windows.begin(), windows.end());
  return windows;
}

}  // namespace

Latency::Latency(std::span<const double> steps)
    : windows(windows_of(steps)), p50(apps::percentile(windows, 0.5)), p99(apps::percentile(windows, 0.99)) {}

Histogram::Histogram(const Latency& latency) : from(latency.windows.front()), counts(kBins) {
  bin = std::max((latency.p99 * kBeyondP99 - from) / static_cast<double>(kBins), 1e-3);
  for (const double window : latency.windows) {
    const auto place = static_cast<std::size_t>((window - from) / bin);
    ++(place < kBins ? counts[place] : beyond);
  }
}

std::string Histogram::bars(double median) const {
  const std::int64_t most = *std::max_element(counts.begin(), counts.end());
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double low = from + static_cast<double>(i) * bin;
    const std::int64_t marks = (counts[i] * kBarMax + most - 1) / most;
    text += fmt::format("{:>10.1f} us |{:<60}| {:>8}{}\n", low, std::string(static_cast<std::size_t>(marks), '#'),
                        counts[i], low <= median && median < low + bin ? "  median" : "");
  }
  return text + fmt::format("{:>13} |{:<60}| {:>8}\n", "beyond", "", beyond);
}

}  // namespace heat
