#pragma once

#include "bench/mpi/mpi_library.h"
#include "bench/runner/options.h"

namespace brant::bench::mpi {

/// Latency and bandwidth of the messages of an MPI, whose job this process is one of, as the programs of OSU measure
/// them (osu_latency, osu_bw, osu_bibw; with more than two processes osu_mbw_mr). Rank 0 prints. Once in a process.
/// Throws Error.
void run_benchmark(const Options& options, const Choice& choice);

}  // namespace brant::bench::mpi
