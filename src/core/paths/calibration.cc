#include "core/paths/calibration.h"

#include <algorithm>
#include <cmath>

namespace brant {

void Calibration::add(Path path, EndPair ends, CostPoint point) {
  Table& table = tables_[slot(path, ends)];
  const auto place = std::lower_bound(table.begin(), table.end(), point.bytes,
                                      [](const CostPoint& each, std::size_t bytes) { return each.bytes < bytes; });
  if (place != table.end() && place->bytes == point.bytes) {
    *place = point;
  } else {
    table.insert(place, point);
  }
}

std::span<const CostPoint> Calibration::points(Path path, EndPair ends) const noexcept {
  return tables_[slot(path, ends)];
}

bool Calibration::knows(EndPair ends) const noexcept {
  for (int path = 0; path < kPathCount; ++path) {
    if (!points(static_cast<Path>(path), ends).empty()) return true;
  }
  return false;
}

bool Calibration::empty() const noexcept {
  return std::none_of(tables_.begin(), tables_.end(), [](const Table& table) { return !table.empty(); });
}

std::optional<double> Calibration::predict(Path path, EndPair ends, std::size_t bytes) const noexcept {
  const std::span<const CostPoint> table = points(path, ends);
  if (table.empty()) return std::nullopt;
  if (bytes <= table.front().bytes) return table.front().us;
  const auto size = static_cast<double>(bytes);
  if (bytes > table.back().bytes) {
    const CostPoint& last = table.back();
    const double beyond = size - static_cast<double>(last.bytes);
    const CostPoint before = table.size() > 1 ? table[table.size() - 2] : CostPoint{};
    double us_per_byte = (last.us - before.us) / static_cast<double>(last.bytes - before.bytes);
    // Noise can make the larger message the faster one; it does not go on like that.
    if (us_per_byte <= 0) us_per_byte = last.us / static_cast<double>(last.bytes);
    return last.us + beyond * us_per_byte;
  }
  const auto above = std::lower_bound(table.begin(), table.end(), bytes,
                                      [](const CostPoint& each, std::size_t wanted) { return each.bytes < wanted; });
  if (above->bytes == bytes) return above->us;
  const CostPoint& low = *(above - 1);
  // A message of no bytes has no logarithm: it counts as one of one byte.
  const double begin = std::log(static_cast<double>(std::max<std::size_t>(low.bytes, 1)));
  const double width = std::log(static_cast<double>(above->bytes)) - begin;
  const double share = width > 0 ? (std::log(size) - begin) / width : 1;
  return low.us * std::pow(above->us / low.us, share);
}

}  // namespace brant
