#include "core/paths/collective_bands.h"

#include <sstream>

#include <fmt/format.h>

#include "base/read_number.h"
#include "brant/base/status.h"
#include "core/paths/calibration_store.h"
#include "core/paths/calibration_text.h"

namespace brant {
namespace {

constexpr std::string_view kBand = "band";

}  // namespace

std::string bands_text(std::span<const CollectiveBand> bands) {
  std::string text = bands.empty() ? "" : "# collectives: name, members, bytes\n";
  for (const CollectiveBand& band : bands)
    text += fmt::format("{} {} {} {}\n", kBand, band.name, band.members, band.bytes);
  return text;
}

std::optional<CollectiveBand> parse_band(std::string_view rest, std::string& why) {
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyz_";
  std::istringstream words{std::string(rest)};
  CollectiveBand band;
  std::string members, bytes, more;
  words >> band.name >> members >> bytes >> more;
  if (band.name.empty() || band.name.find_first_not_of(kLetters) != std::string::npos) {
    why = fmt::format("'{}' is no name of a band", shown(band.name));
  } else if (!read_number(members, band.members) || band.members == 0) {
    why = fmt::format("'{}' is no number of members", shown(members));
  } else if (!read_number(bytes, band.bytes) || band.bytes == 0) {
    why = fmt::format("'{}' is no number of bytes above 0", shown(bytes));
  } else if (!more.empty()) {
    why = fmt::format("'{}' is too much: name, members, bytes", shown(more));
  } else {
    return band;
  }
  return std::nullopt;
}

BandsInUse find_bands(const std::string& wanted, const CalibratedMachine& here) {
  BandsInUse found;
  const CalibrationInUse calibration = find_calibration(wanted, here);
  if (!calibration.measured) return found;
  try {
    std::istringstream lines(read_small_file(calibration.file).value_or(""));
    for (std::string line; std::getline(lines, line);) {
      std::string_view rest = line;
      if (rest.substr(0, kBand.size()) != kBand) continue;
      std::string why;
      if (std::optional<CollectiveBand> band = parse_band(rest.substr(kBand.size()), why))
        found.bands.push_back(std::move(*band));
    }
    found.file = calibration.file;
  } catch (const Error&) {
    found.bands.clear();  // it has gone meanwhile
  }
  return found;
}

}  // namespace brant
