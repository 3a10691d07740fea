#include "cli/calibrate/table.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "bench/runner/options.h"
#include "core/paths/calibration_text.h"
#include "core/paths/path_choice.h"

namespace brant::cli::calibrate {
namespace {

std::string ends_name(EndPair ends) {
  if (ends.from_mapped) return "host to host, from memory that the receiver maps";
  return fmt::format("{} to {}", from_name(ends), to_name(ends));
}

Path taken(const Findings& findings, const PathOrder& order, EndPair ends, std::size_t bytes) {
  const auto serves = [&](Path path) {
    return !findings.calibration.points(path, ends).empty() &&
           (path != Path::courier || bytes <= findings.courier_bytes);
  };
  const PathOrder::Order& paths = order.at(ends, bytes);
  const auto first = std::find_if(paths.begin(), paths.end(), serves);
  return first == paths.end() ? Path::automatic : *first;
}

/// A crossing lies between two measurements: more digits would be pretence.
std::string rough_size(std::size_t bytes) {
  if (bytes >= 10 << 20) return fmt::format("{}M", bytes >> 20);
  if (bytes >= 1 << 20) return fmt::format("{:.1f}M", static_cast<double>(bytes) / (1 << 20));
  if (bytes >= 10 << 10) return fmt::format("{}K", bytes >> 10);
  if (bytes >= 1 << 10) return fmt::format("{:.1f}K", static_cast<double>(bytes) / (1 << 10));
  return std::to_string(bytes);
}

std::size_t largest_measured(const Calibration& calibration, EndPair ends) {
  std::size_t largest = 0;
  for (const Path path : kPaths) {
    for (const CostPoint& point : calibration.points(path, ends)) largest = std::max(largest, point.bytes);
  }
  return largest;
}

std::string table(const Findings& findings, EndPair ends, const PathOrder& order) {
  std::vector<Path> paths;
  std::set<std::size_t> sizes;
  for (const Path path : kPaths) {
    const auto points = findings.calibration.points(path, ends);
    if (!points.empty()) paths.push_back(path);
    for (const CostPoint& point : points) sizes.insert(point.bytes);
  }
  std::string text = fmt::format("{}, microseconds one way\n{:>8}", ends_name(ends), "bytes");
  for (const Path path : paths) text += fmt::format("  {:>11}", path_name(path));
  text += "  taken\n";
  for (const std::size_t bytes : sizes) {
    text += fmt::format("{:>8}", bench::format_size(bytes));
    for (const Path path : paths) {
      const auto points = findings.calibration.points(path, ends);
      const auto point =
          std::find_if(points.begin(), points.end(), [&](const CostPoint& each) { return each.bytes == bytes; });
      text += fmt::format("  {:>11}", point == points.end() ? "-" : fmt::format("{:.2f}", point->us));
    }
    text += fmt::format("  {}\n", path_name(taken(findings, order, ends, bytes)));
  }
  return text;
}

}  // namespace

std::string crossovers(const Findings& findings, EndPair ends) {
  const PathOrder order(findings.calibration);
  const std::size_t measured = largest_measured(findings.calibration, ends);
  std::set<std::size_t> borders = {findings.courier_bytes};
  for (const PathOrder::Band& band : order.bands(ends)) borders.insert(band.up_to);
  std::string text;
  for (auto border = borders.begin(); border != borders.end(); ++border) {
    const Path path = taken(findings, order, ends, *border);
    const auto next = std::next(border);
    if (next == borders.end()) {
      text += fmt::format("{}{}", text.empty() ? "" : "then ", path_name(path));
    } else if (taken(findings, order, ends, *next) != path) {
      const std::string guess =
          *border > measured ? fmt::format(" (above {}: extrapolated)", bench::format_size(measured)) : "";
      text += fmt::format("{} up to {}{}, ", path_name(path), rough_size(*border), guess);
    }
  }
  return text;
}

std::string to_text(const Findings& findings) {
  const PathOrder order(findings.calibration);
  std::string text;
  for (const EndPair ends : kAllEndPairs) {
    if (!findings.calibration.knows(ends)) continue;
    text += fmt::format("{}{}: {}\n\n", table(findings, ends, order), ends_name(ends), crossovers(findings, ends));
  }
  for (const std::string& note : findings.notes) text += fmt::format("{}\n", note);
  return text;
}

}  // namespace brant::cli::calibrate
