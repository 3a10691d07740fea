#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "brant/coll/collectives.h"
#include "models/mpi/shared/placement.h"
#include "models/mpi/shared/scratch.h"
#include "models/mpi/shared/shared_call.h"

namespace brant::mpi {

/// A block that goes along an edge of a graph, as one of its ends knows it.
struct EdgeBlock {
  unsigned process = 0;  ///< Of the other end.
  unsigned source = 0;
  unsigned destination = 0;
  std::size_t place = 0;  ///< In the list of the end that is here.
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

/// Where a process puts together what it gives, and takes apart what it gets. Kept from call to call.
struct SharedRoom {
  Scratch give;
  Scratch get;
  Scratch third;
  std::vector<std::uint64_t> give_bytes;  ///< By process.
  std::vector<std::uint64_t> get_bytes;
  std::vector<std::uint64_t> offsets;  ///< By rank, and one more for the end.
  std::vector<std::uint64_t> cursors;
  std::vector<std::uint64_t> own_cursors;
  std::vector<const void*> inputs;
  std::vector<EdgeBlock> gives;
  std::vector<EdgeBlock> gets;

  void relax() noexcept {
    give.relax();
    get.relax();
    third.relax();
  }
};

/// What a call is carried on with. Those who do so return ok: the call is done; in_progress: the team of processes is
/// to carry out `exchange`, and then they are to be called again, with one exchange more; anything else: `why` says
/// what is wrong. They throw bad_alloc.
struct SharedStep {
  const Placement& placement;
  SharedRoom& room;
  const SharedCall& call;
  Collective& exchange;
  std::string& why;

  [[nodiscard]] std::size_t here() const noexcept { return call.parts.size(); }
  [[nodiscard]] bool begins() const noexcept { return call.exchanges == 0; }
  /// Of process `process`, where all members give as much.
  [[nodiscard]] std::uint64_t members_of(std::size_t process) const noexcept {
    return placement.ranks_of(process).size();
  }
  Status ask_team(const Collective& what) const noexcept {
    exchange = what;
    return Status::in_progress;
  }
};

/// Null and one and the same memory are left alone.
inline void copy_block(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
  if (bytes != 0 && to != from && to != nullptr) __builtin_memcpy(to, from, static_cast<std::size_t>(bytes));
}

/// broadcast, allgather, gather, scatter, alltoall.
Status carry_on_broadcast(const SharedStep& step);
Status carry_on_allgather(const SharedStep& step);
Status carry_on_gather(const SharedStep& step);
Status carry_on_scatter(const SharedStep& step);
Status carry_on_alltoall(const SharedStep& step);
/// Of a graph.
Status carry_on_neighbours(const SharedStep& step);
/// reduce, allreduce; scan, exscan; reduce_scatter.
Status carry_on_reduction(const SharedStep& step);
Status carry_on_prefixes(const SharedStep& step);
Status carry_on_reduce_scatter(const SharedStep& step);

}  // namespace brant::mpi
