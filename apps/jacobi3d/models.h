#pragma once

#include <vector>

#include "brant/brant.h"
#include "brant/coll/team.h"
#include "brant/halo.h"
#include "brant/halo/halo_modes.h"
#include "solver.h"

/// The programming models. Each solves on all blocks of this process, collectively, and gives what became of them; the
/// core (solver.h) is the same.
namespace jacobi {

/// One block in each process, and a channel to each neighbour, forced to `path`.
std::vector<Solution> solve_with_channels(brant::Runtime& runtime, brant::Team& team, Share& share, const Plan& plan,
                                          brant::Path path);

/// Each block a chare, which sends its faces as arguments of messages, by the runtime's path. While they travel, the
/// other chares of its process run.
std::vector<Solution> solve_with_chares(brant::Runtime& runtime, Share& share, const Plan& plan);

/// In memory of the host it is another mode, and would be measured under a wrong name.
constexpr bool needs_device(brant::HaloMode mode) noexcept {
  return mode != brant::HaloMode::shapes && mode != brant::HaloMode::fused && mode != brant::HaloMode::direct;
}

/// The exchange of one of the two fields, 0 or 1, which lie as `Layout` has it.
brant::HaloOptions exchange_of_field(const Decomposition& cut, brant::HaloMode mode, brant::Path path, int field);

/// One block in each process, whose ghosts a HaloExchange fills, in one of its modes.
std::vector<Solution> solve_with_halo(brant::Runtime& runtime, brant::Team& team, Share& share, const Plan& plan,
                                      brant::HaloMode mode, brant::Path path);
/// The same without sweeps: exchanges of one field, by one call for as many of them as one sample stands for.
std::vector<Solution> exchange_halo(brant::Runtime& runtime, Share& share, const Plan& plan, brant::HaloMode mode,
                                    brant::Path path);

}  // namespace jacobi
