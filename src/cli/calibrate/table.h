#pragma once

#include <string>

#include "cli/calibrate/measure.h"

namespace brant::cli::calibrate {

/// What was measured, a row per size and a column per path, and from which size on which path is taken.
std::string to_text(const Findings& findings);

/// "shm up to 8K, ucx up to 3M, then shm": the automatic choice where every path can serve that was measured.
std::string crossovers(const Findings& findings, EndPair ends);

}  // namespace brant::cli::calibrate
