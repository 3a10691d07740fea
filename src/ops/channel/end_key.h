#pragma once

#include <cstdint>

#include "brant/base/ids.h"

namespace brant {

/// An id and a side: one of the two ends of a channel. 33 bits.
constexpr std::uint64_t side_key(ChannelId id, unsigned side) noexcept { return std::uint64_t{id.value} << 1 | side; }

/// An id has an end for each peer that it was used with; one of them may be open. `rank`: of the peer.
constexpr std::uint64_t end_key(ChannelId id, unsigned side, std::int32_t rank) noexcept {
  return side_key(id, side) | static_cast<std::uint64_t>(rank) << 33;
}
constexpr std::int32_t rank_of_end(std::uint64_t key) noexcept { return static_cast<std::int32_t>(key >> 33); }

}  // namespace brant
