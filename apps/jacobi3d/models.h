#pragma once

#include <vector>

#include "brant/brant.h"
#include "solver.h"

/// The programming models. Each solves on all blocks of this process, collectively, and gives what became of them; the
/// core (solver.h) is the same.
namespace jacobi {

/// One block in each process, and a channel to each neighbour, forced to `path`.
std::vector<Solution> solve_with_channels(brant::Runtime& runtime, Share& share, const Plan& plan, brant::Path path);

/// How the faces of chares travel.
enum class Faces { by_channel, as_arguments };

/// Each block a chare. A chare lets the others of its process run while its faces travel. `path` is that of the
/// channels; arguments take the runtime's.
std::vector<Solution> solve_with_chares(brant::Runtime& runtime, Share& share, const Plan& plan, brant::Path path,
                                        Faces faces);

}  // namespace jacobi
