#include "bench/mpi/mpi_benchmark.h"

#include <cstdlib>

#include "bench/mpi/mpi_contender.h"
#include "bench/mpi/mpi_pairs.h"
#include "bench/runner/measure.h"

namespace brant::bench::mpi {
namespace {

/// brant's MPI uses the device that the memory is of.
void choose_device(const Options& options) {
  if (options.memory == MemoryKind::emulated) ::setenv("BRANT_GPU", "emulated", 1);
  if (options.memory == MemoryKind::cuda || options.memory == MemoryKind::cuda_managed)
    ::setenv("BRANT_GPU", "cuda", 1);
}

}  // namespace

void run_benchmark(const Options& options, const Choice& choice) {
  choose_device(options);
  Pairs pairs(choice.library, command_name(options.kind));
  Contenders contenders;
  contenders.push_back(std::make_unique<MpiContender>(pairs, options, choice.peer));
  run_contenders(options, pairs, describe_machine(), contenders);
}

}  // namespace brant::bench::mpi
