#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "brant/coll/team.h"
#include "brant/core/task.h"

namespace jacobi {

/// Collective. What every process gave, in their order. Throws peer_lost.
template <typename T>
  requires std::is_trivially_copyable_v<T>
std::vector<T> gathered(brant::Team& team, const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(team.size()));
  const brant::ConstBuffer given(&mine, sizeof mine, brant::MemoryKind::host);
  team.run(brant::allgather(given, brant::Buffer(all.data(), all.size() * sizeof(T), brant::MemoryKind::host)))
      .or_throw("the processes could not compare notes");
  return all;
}

/// The largest of what the processes give. Throws peer_lost.
inline brant::Task<double> largest_in(brant::Team& team, double own) {
  double largest = 0;
  const brant::OpResult found = co_await team.start(
      brant::allreduce(std::span<const double>(&own, 1), std::span(&largest, 1), brant::ReduceOp::max));
  found.or_throw("the processes could not compare their residuals");
  co_return largest;
}

}  // namespace jacobi
