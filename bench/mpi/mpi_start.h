#pragma once

#include <string>

namespace brant::bench::mpi {

/// A launcher of an MPI, and the library beside it.
struct Installation {
  std::string mpiexec;
  std::string library;
};

/// `where`: a file `mpiexec`, a folder that has bin/mpiexec and lib/libmpi.so, or "mpi": the mpiexec on PATH. Throws
/// Error (not_found), which says what was looked for and the cure.
Installation find(const std::string& where);

/// Runs the command line of this process once more as `ranks` processes of that MPI, which find `library` in
/// kLibraryVariable, and waits for them. Throws Error (io_error) where that fails.
void run_as_job(const Installation& mpi, int ranks);

/// In the environment of processes that `run_as_job` has started.
inline constexpr const char* kLibraryVariable = "BRANT_BENCH_MPI";

}  // namespace brant::bench::mpi
