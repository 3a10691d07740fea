#pragma once

#include <algorithm>
#include <cstdint>

#include "brant/base/ids.h"
#include "models/mpi/members.h"

namespace brant::mpi {

/// Which process each rank of the job lives in: the first ranks in the first process, and so on; where they do not
/// divide evenly, the first processes have one more.
struct RankPlacement {
  int ranks = 1;
  int processes = 1;

  /// How many ranks live in a process.
  [[nodiscard]] constexpr int count_in(int process) const noexcept {
    return ranks / processes + (process < ranks % processes ? 1 : 0);
  }
  /// The first of them.
  [[nodiscard]] constexpr int first_in(int process) const noexcept {
    return process * (ranks / processes) + std::min(process, ranks % processes);
  }
  [[nodiscard]] constexpr Rank process_of(RankId id) const noexcept {
    if (ranks == processes) return Rank{id.value};
    const int more = ranks / processes + 1;
    const int of_more = ranks % processes * more;
    if (id.value < of_more) return Rank{id.value / more};
    return Rank{ranks % processes + (id.value - of_more) / (more - 1)};
  }
  /// The number of a rank among those of its process.
  [[nodiscard]] constexpr std::uint16_t slot_of(RankId id) const noexcept {
    if (ranks == processes) return 0;
    return static_cast<std::uint16_t>(id.value - first_in(process_of(id).value));
  }
};

}  // namespace brant::mpi
