#pragma once

/// Who owns which active message number of the wire.
namespace brant::am_id {

inline constexpr unsigned kChannelControl = 1;
inline constexpr unsigned kMessage = 2;        ///< ops/am: messages of all services.
inline constexpr unsigned kMessageCredit = 3;  ///< ops/am: how far the receiver has come.
inline constexpr unsigned kFarewell = 6;       ///< core: who is connected, and whose program has ended.
inline constexpr unsigned kChannelStall = 7;   ///< ops/channel: what two ends that wait have sent and received.
inline constexpr unsigned kJoin = 8;           ///< core: processes that join and leave after the start.

}  // namespace brant::am_id
