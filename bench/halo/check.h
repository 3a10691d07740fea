#pragma once

#include <vector>

#include "brant/halo/halo_exchange.h"

namespace brant::bench {

/// Writes into each cell that a block owns what it will be checked against, and -1 into the others: its number in the
/// grid and its variable, as Comb does.
void fill_fields(Runtime& runtime, const HaloOptions& options, const HaloExchange& exchange,
                 const std::vector<Buffer>& fields);

/// Throws Error internal, naming the first cell that is not what it should be after an exchange.
void check_fields(Runtime& runtime, const HaloOptions& options, const HaloExchange& exchange,
                  const std::vector<Buffer>& fields);

}  // namespace brant::bench
