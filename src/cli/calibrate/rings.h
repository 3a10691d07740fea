#pragma once

#include "bench/model/parameters.h"
#include "brant/core/runtime.h"

namespace brant::cli::calibrate {

/// What a ring costs between a kernel that runs on the device of this process and its CPU, either way. Throws Error.
bench::model::NotifyParameters measure_rings(Runtime& runtime);

}  // namespace brant::cli::calibrate
