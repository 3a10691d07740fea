#pragma once

#include <memory>
#include <vector>

#include "bench/runner/contender.h"
#include "bench/runner/machine.h"
#include "bench/runner/meeting.h"
#include "bench/runner/options.h"

namespace brant::bench {

/// Runs one benchmark in this process, which is one of the job's: every size, every contender in turn, the table on
/// standard output of rank 0. Collective. Throws Error.
void run_benchmark(const Options& options);

using Contenders = std::vector<std::unique_ptr<Contender>>;

/// The same by these contenders, of which the first one's figures are compared with those of a second one.
void run_contenders(const Options& options, Meeting& meeting, const Machine& machine, const Contenders& contenders);

}  // namespace brant::bench
