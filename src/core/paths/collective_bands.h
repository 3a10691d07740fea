#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/paths/calibration.h"

namespace brant {

/// Where members of a team change from one algorithm of their collectives to another one, as it was measured. Stands in
/// a calibration, a line for each: "band slices 2 16384".
struct CollectiveBand {
  std::string name;  ///< Of letters and underscores; those who use it know what it means.
  unsigned members = 0;
  std::uint64_t bytes = 0;

  bool operator==(const CollectiveBand&) const noexcept = default;
};

/// Lines of a calibration's text.
std::string bands_text(std::span<const CollectiveBand> bands);
/// What stands behind "band" in such a line. Nothing: `why` says what is wrong with it.
std::optional<CollectiveBand> parse_band(std::string_view rest, std::string& why);

/// Those that a process goes by.
struct BandsInUse {
  std::vector<CollectiveBand> bands;  ///< Empty: nothing was measured.
  std::string file;                   ///< That they come from.
};
/// Of the file that `find_calibration` goes by. Never throws for what is wrong with a file, which is said there.
BandsInUse find_bands(const std::string& wanted, const CalibratedMachine& here);

}  // namespace brant
