#pragma once

/// Who owns which active message number of the wire.
namespace brant::am_id {

inline constexpr unsigned kChannelControl = 1;
inline constexpr unsigned kMessage = 2;        ///< ops/am: messages of all services.
inline constexpr unsigned kMessageCredit = 3;  ///< ops/am: how far the receiver has come.

}  // namespace brant::am_id
