#pragma once

#include <cstdint>
#include <string_view>

#include "brant/coll/way.h"
#include "ops/coll/device/stream_board.h"
#include "ops/coll/work.h"

namespace brant::coll {

/// From how many bytes on which algorithm of kernels is the better one. Equal at all members of a team. Those of two
/// members were measured on H100 with NVLink. With more, lines send (n - 1) times twice the bytes, and rooms cost 5 us
/// more than lines: not measured.
struct StreamBands {
  std::uint64_t lines_to[kStreamMembersMax + 1] = {0,        0,        1 << 20,  256 << 10, 128 << 10,
                                                   64 << 10, 64 << 10, 64 << 10, 64 << 10};  ///< By members.
  std::uint64_t slices_from = 128 << 10;     ///< For three members or more: two send as much by slots.
  std::uint64_t line_bytes_of_block = 3840;  ///< A word for each thread but for those of the warp that awaits heads.
  std::uint64_t room_bytes_of_block = 8 << 10;
};

/// How the kernels of all members carry out a call.
struct StreamPlan {
  StreamAlgorithm algorithm = StreamAlgorithm::alone;
  unsigned blocks = 1;
  std::uint64_t share = 0;  ///< See StreamCall.
  std::uint64_t piece = 0;
  std::uint64_t rounds = 1;

  bool operator==(const StreamPlan&) const noexcept = default;
};

/// What all members know of a call before they exchange anything.
struct StreamQuery {
  CollectiveKind kind = CollectiveKind::none;
  unsigned members = 1;
  std::uint64_t bytes = 0;  ///< As Work::bytes.
  StreamBands bands;
  StreamWay way = StreamWay::automatic;
};

/// Null, or why the way that is forced does not carry out such a call; `stream_plan_for` has no plan for it then.
const char* why_not_forced(const StreamQuery& query) noexcept;
/// Null, or why kernels do not carry out such a call, and the cure.
const char* why_not_by_kernels(const Work& work, unsigned members, StreamWay way) noexcept;
/// A pure function: all members come to the same plan.
StreamPlan stream_plan_for(const StreamQuery& query) noexcept;
/// "kernel lines", "kernel slots", "kernel slices", "kernel alone".
std::string_view stream_algorithm_name(StreamAlgorithm algorithm) noexcept;

}  // namespace brant::coll
