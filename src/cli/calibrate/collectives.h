#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/runner/session.h"
#include "core/paths/collective_bands.h"

namespace brant::cli::calibrate {

/// What one size of a call cost by each of two ways.
struct WayPoint {
  std::uint64_t bytes = 0;
  double few_us = 0;   ///< By the way for fewer bytes.
  double many_us = 0;  ///< By that for more.
};

/// Two ways of one call, over sizes.
struct WayTable {
  std::string call;  ///< "allreduce, streams".
  std::string few, many;
  std::vector<WayPoint> points;  ///< Ascending by size.
};

/// From which size on the way for more bytes costs no more than the other one, there and at all larger sizes. Nowhere:
/// beyond what was measured, twice the largest size.
std::uint64_t crossing(const WayTable& table) noexcept;

struct CollectiveFindings {
  std::vector<CollectiveBand> bands;
  std::vector<WayTable> tables;
  std::vector<std::string> notes;  ///< What was not measured, and why.
};

/// Collectives of all processes of the session by forced ways, in host memory and by streams of the device where there
/// is one: a second or two, where each has a core. Collective. `wanted`: rank 0's counts; without, nothing is measured.
/// The findings are rank 0's. Throws Error.
CollectiveFindings measure_collectives(bench::Session& session, bool wanted);

/// A row per size, and where ways change.
std::string to_text(const CollectiveFindings& findings, unsigned members);

}  // namespace brant::cli::calibrate
