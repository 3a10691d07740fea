#pragma once

#include <compare>
#include <cstdint>

namespace brant {

/// A process of the job, 0 to size-1.
struct Rank {
  std::int32_t value = -1;
  constexpr auto operator<=>(const Rank&) const noexcept = default;
};

/// The name of a channel, the same at its two ends and used by no other channel of the job. 28 bits.
struct ChannelId {
  std::uint32_t value = 0;
  constexpr auto operator<=>(const ChannelId&) const noexcept = default;
};

inline constexpr std::uint32_t kChannelIdMax = (1u << 28) - 1;

}  // namespace brant
