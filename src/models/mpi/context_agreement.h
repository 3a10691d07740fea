#pragma once

#include <cstdint>
#include <span>

#include "models/mpi/context_numbers.h"
#include "models/mpi/members.h"

namespace brant::mpi {

class RankState;

/// The context of a communicator that these ranks make: all of them call it, in this order, and nobody else; it waits
/// for all. It is new to each of them; communicators without a common member may have the same one. By messages up to
/// the first rank and back along a tree; once, and again where threads make several at a time. Throws CallError.
[[nodiscard]] std::uint32_t agree_on_context(RankState& rank, std::span<const RankId> ids, const Making& making);

}  // namespace brant::mpi
