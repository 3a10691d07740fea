#pragma once

#include <string>
#include <vector>

namespace brant::cli {

/// Runs this command line once in processes of each MPI ("mpi" or the path of an mpiexec), then starts it again as a
/// job of `ranks`. Returns in the processes of that job, and of one that somebody else started, which may have no MPI
/// beside it. Throws Error.
void start_behind_mpis(const std::vector<std::string>& mpis, int ranks);

}  // namespace brant::cli
