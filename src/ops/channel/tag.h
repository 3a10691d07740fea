#pragma once

#include <cstdint>

#include "brant/base/ids.h"

/// The 64 bits by which a message meets its receive. Layouts follow the paper (section 3.1.1, 3.2):
///   channel:        type (4) | channel id (28) | direction (1) | counter (31)
///   chare message:  type (4) | source PE (32) | counter (28)
/// The direction bit is ours: without it two ends of one channel in one process would match their own messages.
namespace brant::tag {

enum class Type : std::uint8_t {
  chare_data = 1,
  channel = 2,
  channel_acknowledged = 3,  ///< As `channel`; the sender waits for an acknowledgement. Receives ignore the difference.
};

inline constexpr unsigned kTypeShift = 60;
inline constexpr unsigned kChannelShift = 32;
inline constexpr unsigned kDirectionShift = 31;
inline constexpr std::uint32_t kCounterMask = (1u << 31) - 1;
/// All bits but the lowest of the type, which tells `channel` from `channel_acknowledged`.
inline constexpr std::uint64_t kChannelReceiveMask = ~(std::uint64_t{1} << kTypeShift);

/// `sender_side` is 0 or 1.
constexpr std::uint64_t channel(Type type, ChannelId id, unsigned sender_side, std::uint32_t counter) noexcept {
  return static_cast<std::uint64_t>(type) << kTypeShift | static_cast<std::uint64_t>(id.value) << kChannelShift |
         static_cast<std::uint64_t>(sender_side & 1u) << kDirectionShift | (counter & kCounterMask);
}

constexpr Type type_of(std::uint64_t tag) noexcept { return static_cast<Type>(tag >> kTypeShift); }

}  // namespace brant::tag
