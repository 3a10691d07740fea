#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/mpi/mpi_library.h"
#include "bench/runner/options.h"
#include "brant/coll/team.h"

namespace brant::bench {

/// What the user asked for.
struct CollBench {
  /// barrier, broadcast, allreduce, allgather, reduce_scatter or alltoall.
  CollectiveKind kind = CollectiveKind::allreduce;
  std::vector<std::size_t> sizes;  ///< As nccl-tests count them: the larger one of what each gives and gets.
  std::size_t iterations = 0;      ///< Samples per size; 0: by size.
  TeamWay way = TeamWay::automatic;
  StreamWay stream_way = StreamWay::automatic;
  Alloc alloc = Alloc::library;
  bool device = false;  ///< The buffers lie in memory of the device. Streams and graphs need that.
  Trigger trigger = Trigger::host;
  bool check = false;  ///< Every element, in calls that are not timed, before and after those that are.
  bool nccl = false;   ///< NCCL is measured first, in the same processes. The buffers lie on the device then.
  std::string json;
};

/// What a link would have to carry if this were done as well as can be, for each byte of the size, as nccl-tests count:
/// 2 (n - 1) / n for an allreduce, 1 for a broadcast, (n - 1) / n for the others.
double bus_factor(CollectiveKind kind, int ranks) noexcept;

/// Runs it in this job, behind NCCL where that is asked for; rank 0 prints. Throws Error.
void run_collectives(const CollBench& bench);
/// The same by the MPI whose processes these are.
void run_collectives_of_mpi(const CollBench& bench, const mpi::Choice& choice);

}  // namespace brant::bench
