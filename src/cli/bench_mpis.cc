#include "cli/bench_mpis.h"

#include <cstdlib>

#include "base/env.h"
#include "bench/mpi/mpi_start.h"
#include "bench/runner/self_start.h"
#include "brant/base/status.h"

namespace brant::cli {
namespace {

/// In the environment of the processes that start when the rivals have played.
constexpr const char* kPeersPlayed = "BRANT_BENCH_PEERS_PLAYED";

}  // namespace

void start_behind_mpis(const std::vector<std::string>& mpis, int ranks) {
  if (bench::started_alone()) {
    for (const std::string& mpi : mpis) bench::mpi::run_as_job(bench::mpi::find(mpi), ranks);
    static_cast<void>(::setenv(kPeersPlayed, "1", 1));
    bench::restart_as_job(ranks);
  }
  if (!mpis.empty() && env(kPeersPlayed).empty())
    throw Error(Status::invalid_argument,
                "--peer of an MPI starts processes by itself: call `brant bench` without a launcher");
  static_cast<void>(::unsetenv(kPeersPlayed));
}

}  // namespace brant::cli
