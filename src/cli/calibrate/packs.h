#pragma once

#include "bench/model/parameters.h"
#include "brant/core/runtime.h"

namespace brant::cli::calibrate {

/// What the kernel costs by which halo exchanges pack, from 1 KB to 16 MB, of rows of 2 KB. Throws Error: not_supported
/// where no line describes it, and what the device says.
bench::model::PackParameters measure_packs(Runtime& runtime);

}  // namespace brant::cli::calibrate
