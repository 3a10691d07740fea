#pragma once

#include "bench/runner/options.h"

namespace brant::bench {

/// Runs one benchmark in this process, which is one of the job's: every size, every contender in turn, the table on
/// standard output of rank 0. Collective. Throws Error.
void run_benchmark(const Options& options);

}  // namespace brant::bench
