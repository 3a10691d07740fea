#pragma once

#include <string>
#include <vector>

#include "run.h"

namespace heat {

/// What a person wants to know of a run: median, p99, spread, and the histogram if it was asked for.
std::string summary(const Outcome& outcome, const Options& options);
/// A row for each run, into `options.json`. Names the machine of this process.
void append_rows(const std::vector<Outcome>& outcomes, const Options& options, brant::Runtime& runtime);

}  // namespace heat
