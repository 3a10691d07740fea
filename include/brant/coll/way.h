#pragma once

#include <cstdint>
#include <string_view>

#include "brant/base/api.h"

namespace brant {

/// Which way the bytes of a team's collectives go. `automatic` chooses for each call; the others force it, for
/// measurements and to look for a fault. A call that the way cannot carry out is refused (not_supported), and the log
/// says why; so is a team whose members do not share what the way needs. A barrier goes by lines under every way of
/// shared memory.
enum class TeamWay : std::uint8_t {
  automatic,  ///< Shared memory where all members are on one host and can map it, else messages.
  messages,   ///< Messages in any case, by the algorithm that suits the call.
  lines,      ///< One line of shared memory a member: calls of 48 bytes at most.
  slots,      ///< A slot of shared memory a member.
  slices,     ///< Each member combines one slice for all: allreduce and reduce.
  reads,      ///< Members read each other's buffers; where one cannot be mapped, all go the way that is next best.
  hosts,      ///< One member of each host exchanges messages: members on several hosts, of which some share one.
};
inline constexpr unsigned kTeamWayCount = 7;

/// The same of calls that streams carry out. A barrier has one way only.
enum class StreamWay : std::uint8_t {
  automatic,
  lines,   ///< Each word says by itself that it is there.
  slots,   ///< Pieces, and a word behind each that says so.
  slices,  ///< Each member combines one slice for all: allreduce and reduce of three members or more.
};
inline constexpr unsigned kStreamWayCount = 4;

/// "automatic", "messages", "lines", ...
BRANT_API std::string_view team_way_name(TeamWay way) noexcept;
BRANT_API std::string_view stream_way_name(StreamWay way) noexcept;
/// The way of this name. False: there is none.
BRANT_API bool team_way_from_name(std::string_view name, TeamWay& way) noexcept;
BRANT_API bool stream_way_from_name(std::string_view name, StreamWay& way) noexcept;

}  // namespace brant
