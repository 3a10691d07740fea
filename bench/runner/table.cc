#include "bench/runner/table.h"

#include <fmt/format.h>

namespace brant::bench {

std::string figure(double value) {
  if (value >= 1000) return fmt::format("{:.0f}", value);
  if (value >= 100) return fmt::format("{:.1f}", value);
  if (value >= 10) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

std::string Table::header() const {
  const bool latency = kind_ == Kind::latency;
  std::string text =
      latency ? fmt::format("{:>8}  {:>9} {:>9} {:>9}", "bytes", "min us", "p50 us", "p99 us")
              : fmt::format("{:>8}  {:>9} {:>9} {:>12} {:>12}", "bytes", "GB/s", "M/s", "p50 us/win", "p99 us/win");
  if (!rival_.empty())
    text += fmt::format("  {:>11} {:>7}", fmt::format("{} {}", rival_, latency ? "p50 us" : "GB/s"), "ratio");
  return text + fmt::format("  {:<11} {:>6}", "path", "n");
}

std::string Table::line(const Row& ours, const std::optional<Row>& rival) const {
  const bool latency = kind_ == Kind::latency;
  std::string text = latency
                         ? fmt::format("{:>8}  {:>9} {:>9} {:>9}", format_size(ours.bytes), figure(ours.us.min),
                                       figure(ours.us.p50), figure(ours.us.p99))
                         : fmt::format("{:>8}  {:>9} {:>9} {:>12} {:>12}", format_size(ours.bytes), figure(ours.gb_s()),
                                       figure(ours.rate()), figure(ours.us.p50), figure(ours.us.p99));
  if (rival) {
    // Above 1 is better than the rival for bandwidth, below 1 for latency: the ratio of what the column shows.
    const double mine = latency ? ours.us.p50 : ours.gb_s();
    const double theirs = latency ? rival->us.p50 : rival->gb_s();
    text += fmt::format("  {:>11} {:>7}", figure(theirs), theirs > 0 ? fmt::format("{:.2f}x", mine / theirs) : "-");
  } else if (!rival_.empty()) {
    text += fmt::format("  {:>11} {:>7}", "-", "-");
  }
  return text + fmt::format("  {:<11} {:>6}", ours.path, ours.us.n);
}

}  // namespace brant::bench
