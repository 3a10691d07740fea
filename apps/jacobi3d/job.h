#pragma once

#include "brant/coll/team.h"
#include "options.h"

namespace jacobi {

/// One run, or two of them to compare: sets up, solves, checks, tells. Collective; may be called again. Rank 0 alone
/// prints and writes files. Throws what failed: what every process finds out (no memory, bad sizes) on all, what only
/// one can find out (a file that cannot be written, a failed check) there, and peer_lost on the others once it has
/// gone.
void run_job(brant::Runtime& runtime, brant::Team& team, const Options& options);

}  // namespace jacobi
