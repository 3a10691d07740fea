#pragma once

#include <compare>
#include <cstdint>

namespace brant {

/// A process of the job, 0 to size-1.
struct Rank {
  std::int32_t value = -1;
  constexpr auto operator<=>(const Rank&) const noexcept = default;
};

/// The name of a channel, the same at its two ends and used by no other channel of the job. 0 to kChannelIdMax.
struct ChannelId {
  std::uint32_t value = 0;
  constexpr auto operator<=>(const ChannelId&) const noexcept = default;
};

/// The largest id of a program's own channels. An id has 28 bits; the sixteenth at the top is brant's, for the channels
/// it opens itself (`ops/channel/reserved_ids.h`).
inline constexpr std::uint32_t kChannelIdMax = 0xf00'0000 - 1;

}  // namespace brant
