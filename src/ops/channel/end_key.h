#pragma once

#include <cstdint>

#include "brant/base/ids.h"
#include "core/joined_rank.h"

namespace brant {

/// An id and a side: one of the two ends of a channel. 33 bits.
constexpr std::uint64_t side_key(ChannelId id, unsigned side) noexcept { return std::uint64_t{id.value} << 1 | side; }

/// An id has an end for each peer that it was used with; one of them may be open. `rank`: of the peer.
constexpr std::uint64_t end_key(ChannelId id, unsigned side, std::int32_t rank) noexcept {
  return side_key(id, side) | static_cast<std::uint64_t>(rank) << 33;
}
/// What only one channel of this process may have: in a job an id names one channel, whoever has its ends. Jobs that
/// join know nothing of each other's ids, so there each pair of processes has its own.
constexpr std::uint64_t open_key(ChannelId id, unsigned side, std::int32_t rank) noexcept {
  return joined_rank::is_one(rank) ? end_key(id, side, rank) : side_key(id, side);
}
constexpr std::int32_t rank_of_end(std::uint64_t key) noexcept { return static_cast<std::int32_t>(key >> 33); }

}  // namespace brant
