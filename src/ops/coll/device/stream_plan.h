#pragma once

#include <cstdint>
#include <string_view>

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

/// Null, or why kernels do not carry out such a call.
const char* why_not_by_kernels(const Work& work) noexcept;
/// A pure function of what all members know: all come to the same plan.
StreamPlan stream_plan_for(CollectiveKind kind, unsigned members, std::uint64_t bytes,
                           const StreamBands& bands = {}) noexcept;
/// "kernel lines", "kernel slots", "kernel slices", "kernel alone".
std::string_view stream_algorithm_name(StreamAlgorithm algorithm) noexcept;

}  // namespace brant::coll
