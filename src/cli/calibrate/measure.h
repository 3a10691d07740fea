#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/runner/session.h"
#include "core/paths/calibration.h"

namespace brant::cli::calibrate {

/// What was found out about this machine.
struct Findings {
  Calibration calibration;
  std::size_t courier_bytes = 0;   ///< Largest message of the device's courier; 0: none.
  bool busy = false;               ///< Others used the cores meanwhile: the numbers may be theirs.
  std::vector<std::string> notes;  ///< What was not measured, and why; what to doubt.
};

/// Ping-pong over each path of host memory from elsewhere, over that of memory that the receiver maps, and of the
/// device's where there is one, at eight sizes: some seconds. Collective, between two processes of one host; the
/// findings are rank 0's, and nothing elsewhere. Throws Error.
Findings measure_paths(bench::Session& session);

}  // namespace brant::cli::calibrate
