#pragma once

/// Who owns which active message number of the wire.
namespace brant::am_id {

inline constexpr unsigned kChannelControl = 1;

}  // namespace brant::am_id
