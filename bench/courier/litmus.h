#pragma once

#include <cstddef>

#include "transfers.h"

namespace brant::bench {

/// A litmus test of the fences that the courier leaves out where that was measured (docs/decisions/0010): rank 0 writes
/// another value over the same bytes again and again, in orders that several groups share, and rank 1 looks at every
/// word as soon as it sees the flag. A word of the round before is *stale*: the flag overtook it.
struct Litmus {
  enum class Landing {
    host,    ///< Rank 1's CPU reads page-locked memory, behind the bus.
    device,  ///< Rank 1's own courier reads its device's memory, on an order given when the flag was seen.
  };
  enum class Flag {
    with_the_bytes,
    too_soon,  ///< The bytes follow when rank 1 has looked: every round must be found stale.
  };
  struct Found {
    std::size_t rounds = 0;
    std::size_t stale = 0;  ///< Rounds with at least one stale word.
  };

  Landing landing = Landing::host;
  Flag flag = Flag::with_the_bytes;
  std::size_t bytes = 0;  ///< Of a round; at most Shared::kLanding.
  std::size_t rounds = 0;

  /// Collective. Both get the same answer. Throws Error.
  Found run(Pair& pair, Courier& courier, Buffers& buffers) const;
};

/// All landings and sizes, with a control of each, as rows. Collective. True if no flag came before its
/// bytes, and the controls were found stale.
bool measure_litmus(Pair& pair, Courier& courier, Buffers& buffers, std::size_t rounds, Rows& rows);

}  // namespace brant::bench
