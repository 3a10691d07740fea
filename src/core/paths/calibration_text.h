#pragma once

#include <string>
#include <string_view>

#include "core/paths/calibration.h"

namespace brant {

/// The text of a calibration file. One line per fact, `#` begins a comment line, blank lines are skipped:
///
///     brant-calibration 1
///     brant 0.1.0
///     ucx 1.22.0
///     cuda CUDA 13.0 (driver 580.159)
///     host node7
///     gpu GPU-0e6c...
///     point copy_engine device device 65536 8.85      path, from, to, bytes, microseconds one way
///     band slices 2 16384                             see CollectiveBand; kept apart from a Calibration
std::string calibration_text(const Calibration& calibration);

/// Throws Error invalid_argument: `name`, the number of the line, what is wrong with it, and the cure.
Calibration parse_calibration(std::string_view text, std::string_view name);

/// "host", "device", and at the sending end "mapped": host memory that the receiver maps.
constexpr std::string_view from_name(EndPair ends) noexcept {
  return ends.from_mapped ? "mapped" : ends.from_device ? "device" : "host";
}
constexpr std::string_view to_name(EndPair ends) noexcept { return ends.to_device ? "device" : "host"; }

/// For an error text: of a word of a file what people can read, and no more of it than a line shows.
std::string shown(std::string_view word);

}  // namespace brant
