#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "brant/base/buffer.h"
#include "brant/base/clock.h"

namespace brant {

/// What the channels of a process were given and have delivered, all together. The hidden channels for arguments of
/// chares are left out, but for `moves`: who uses those counts them.
///
/// Summed over the processes of a job: if none of this moves, then `sent == received` with nothing `sending` or
/// `withdrawing` means that no channel has anything under way, however many receives wait. Else `nothing_comes` can
/// tell.
struct ChannelTraffic {
  std::uint64_t sent = 0;         ///< Messages posted, those that the window holds back included.
  std::uint64_t received = 0;     ///< Messages that reached their receives.
  std::uint64_t moves = 0;        ///< Grows when a send or receive begins, and when it ends.
  std::uint64_t sending = 0;      ///< Sends that have not ended.
  std::uint64_t withdrawing = 0;  ///< Receives that were taken back and have not ended.
};

/// The same of one end.
struct ChannelEnd {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  std::uint32_t channel = 0;
  std::uint32_t side = 0;
  std::int32_t rank = -1;
  std::int32_t peer = -1;
  std::uint64_t next_send = 0;            ///< Messages below this number were posted.
  std::uint64_t first_sending = kNone;    ///< The first of them that has not ended.
  std::uint64_t next_receive = 0;         ///< The first message that no receive was posted for.
  std::uint64_t first_receiving = kNone;  ///< The first that a receive waits for.
};

/// Of all ends of a job, seen at one moment: no message that was sent has a receive posted that still waits, and no
/// send that has not ended has a receive.
bool nothing_comes(std::vector<ChannelEnd> ends);

/// A send or receive that has not ended, for reports.
struct ChannelWait {
  std::uint32_t channel = 0;
  std::uint32_t side = 0;
  std::int32_t peer = -1;
  bool is_send = false;
  bool held_back = false;  ///< A send that the window does not take, and which has no number yet.
  std::uint64_t number = 0;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::host;
  TimePoint since{};
};

}  // namespace brant
