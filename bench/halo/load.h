#pragma once

#include "bench/model/halo_bound.h"
#include "brant/halo/halo_exchange.h"

namespace brant::bench {

/// What one process of `ranks` does in an exchange of fields in `memory`; all are on one host. Throws Error
/// invalid_argument: options that make no sense.
model::HaloLoad load_of(const HaloOptions& options, MemoryKind memory, int rank, int ranks);

/// The model's answer for the process that has most to do. Throws Error not_supported: nothing is known of this memory.
model::HaloBound bound_of(const model::Parameters& parameters, const HaloOptions& options, MemoryKind memory,
                          int ranks);

}  // namespace brant::bench
