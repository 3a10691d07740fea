#pragma once

#include "models/mpi/ranks/executable_file.h"

namespace brant::mpi {

/// Loads, once for all ranks, the libraries that the program needs, from where the program would have found them. They
/// stay loaded. Throws Error: not_found for a library that is not there; not_supported for one that the ranks would
/// share with its global variables though it is likely to be the program's own: it lies in none of the system's folders
/// and is no part of MPI, CUDA or the compiler. `share` lets such libraries be shared.
void load_needed_libraries(const ExecutableFile& file, bool share);

}  // namespace brant::mpi
