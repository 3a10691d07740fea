#pragma once

#include <string>

#include "bench/model/parameters.h"
#include "bench/runner/session.h"

namespace brant::cli::calibrate {

/// Most processes of a job that measures the parameters of models.
inline constexpr int kModelRanksMax = 256;

struct ModelFindings {
  bench::model::Parameters parameters;
  bool busy = false;  ///< Others used the cores meanwhile.
};

/// Measures the paths at sizes from 8 B to 16 MB, floods, several pairs at once, copies and rings, and fits the models
/// to it: less than 30 s. Collective, of an even number of processes of one host; the findings are rank 0's, and
/// nothing elsewhere. A path that no model describes is left out, and a note says why. Throws Error.
ModelFindings measure_model(bench::Session& session);

/// What was found, for people.
std::string to_text(const bench::model::Parameters& parameters);

}  // namespace brant::cli::calibrate
