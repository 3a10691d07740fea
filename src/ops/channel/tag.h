#pragma once

#include <cstdint>

#include "brant/base/ids.h"

/// The 64 bits by which a message meets its receive. Layouts follow the paper (section 3.1.1, 3.2):
///   channel:        type (4) | channel id (28) | direction (1) | sender's rank (15) | counter (16)
///   chare message:  type (4) | source PE (32) | counter (28)
/// Two fields are ours. Without the direction two ends of one channel in one process would match their own messages.
/// Without the rank an id that goes to another peer would match what the first one left unread; in jobs of more than
/// 32768 ranks a few share one. The counter comes again after more messages than there can be receives at one time.
namespace brant::tag {

enum class Type : std::uint8_t {
  chare_data = 1,
  channel = 2,
  channel_acknowledged = 3,  ///< As `channel`; the sender waits for an acknowledgement. Receives ignore the difference.
};

inline constexpr unsigned kTypeShift = 60;
inline constexpr unsigned kChannelShift = 32;
inline constexpr unsigned kDirectionShift = 31;
inline constexpr unsigned kRankShift = 16;
inline constexpr std::uint32_t kRankMask = (1u << 15) - 1;
inline constexpr std::uint32_t kCounterMask = (1u << 16) - 1;
/// All bits but the lowest of the type, which tells `channel` from `channel_acknowledged`.
inline constexpr std::uint64_t kChannelReceiveMask = ~(std::uint64_t{1} << kTypeShift);

struct Sender {
  std::int32_t rank = 0;
  unsigned side = 0;  ///< 0 or 1.
};

constexpr std::uint64_t channel(Type type, ChannelId id, Sender sender, std::uint64_t counter) noexcept {
  return static_cast<std::uint64_t>(type) << kTypeShift | static_cast<std::uint64_t>(id.value) << kChannelShift |
         static_cast<std::uint64_t>(sender.side & 1u) << kDirectionShift |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(sender.rank) & kRankMask) << kRankShift |
         (counter & kCounterMask);
}

constexpr Type type_of(std::uint64_t tag) noexcept { return static_cast<Type>(tag >> kTypeShift); }

}  // namespace brant::tag
