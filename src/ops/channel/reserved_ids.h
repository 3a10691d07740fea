#pragma once

#include <cstdint>

#include "brant/base/ids.h"

/// Who owns which channel ids above kChannelIdMax, which `Channel::open` refuses.
namespace brant::reserved_id {

/// Channels between chares: agreed upon by the two processes (models/chare).
inline constexpr std::uint32_t kChareChannels = kChannelIdMax + 1;
/// The hidden channel of every pair of ranks for arguments of chares: one id for each rank.
inline constexpr std::uint32_t kDataLanes = 0xff0'0000;
inline constexpr std::uint32_t kLast = (1u << 28) - 1;
/// The same of a process that has joined: each pair of them has its own ids.
inline constexpr ChannelId kJoinedDataLane{kLast};

/// The id for the pair (a, b): each rank needs as many ids as it has peers, and disjoint pairs may share one, so the
/// sum modulo the number of ranks does: at one rank no two peers have the same.
constexpr ChannelId data_lane(std::int32_t a, std::int32_t b, std::int32_t ranks) noexcept {
  const std::int64_t sum = (std::int64_t{a} + b) % ranks;
  return {kDataLanes + static_cast<std::uint32_t>(sum)};
}

}  // namespace brant::reserved_id
