#include "ops/coll/device/stream_plan.h"

#include <algorithm>
#include <array>

namespace brant::coll {
namespace {

using Kind = CollectiveKind;

constexpr std::uint64_t kGrain = 16;

std::uint64_t parts_of(std::uint64_t bytes, std::uint64_t part) noexcept { return (bytes + part - 1) / part; }
std::uint64_t grained(std::uint64_t bytes) noexcept { return parts_of(bytes, kGrain) * kGrain; }

/// So many blocks as there is enough to do for.
void share_out(StreamPlan& plan, std::uint64_t bytes, std::uint64_t of_block, unsigned blocks_max) noexcept {
  const std::uint64_t blocks = std::clamp<std::uint64_t>(parts_of(bytes, of_block), 1, blocks_max);
  plan.share = std::max(grained(parts_of(bytes, blocks)), kGrain);
  plan.blocks = static_cast<unsigned>(std::max<std::uint64_t>(parts_of(bytes, plan.share), 1));
}

/// Pieces are of one size, and as large as fits.
void cut(StreamPlan& plan, std::uint64_t room, std::uint64_t parts) noexcept {
  plan.rounds = parts_of(plan.share, room * parts);
  plan.piece = grained(parts_of(plan.share, plan.rounds * parts));
}

}  // namespace

const char* why_not_by_kernels(const Work& work) noexcept {
  if (!work.blocks.empty()) return "blocks of different sizes";
  const Folding& how = work.folding;
  if (how.op == ReduceOp::user) return "a function of the program, which is the host's";
  if (how.op == ReduceOp::min_place || how.op == ReduceOp::max_place) return "elements of two parts";
  return nullptr;
}

StreamPlan stream_plan_for(Kind kind, unsigned members, std::uint64_t bytes, const StreamBands& bands) noexcept {
  StreamPlan plan;
  const bool has_slices = (kind == Kind::allreduce || kind == Kind::reduce) && members > 2;
  const std::uint64_t line_bytes_max = StreamBoard::lines_from_each(members) * 8;
  const std::uint64_t lines_to = std::min(bands.lines_to[members], line_bytes_max * kStreamBlocksMax);
  if (members > 1 && kind != Kind::barrier && bytes <= lines_to) {
    plan.algorithm = StreamAlgorithm::lines;
    share_out(plan, bytes, std::min(bands.line_bytes_of_block, line_bytes_max), kStreamBlocksMax);
    plan.piece = plan.share;
    return plan;
  }
  share_out(plan, bytes, bands.room_bytes_of_block, kStreamBlocksMax);
  if (has_slices && bytes >= bands.slices_from) {
    plan.algorithm = StreamAlgorithm::slices;
    cut(plan, StreamRoom::slice_bytes(members), members);
  } else {
    plan.algorithm = members == 1 ? StreamAlgorithm::alone : StreamAlgorithm::slots;
    cut(plan, StreamRoom::slot_bytes(members), 1);
  }
  return plan;
}

std::string_view stream_algorithm_name(StreamAlgorithm algorithm) noexcept {
  constexpr std::array<std::string_view, 4> kNames = {"kernel alone", "kernel lines", "kernel slots", "kernel slices"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

}  // namespace brant::coll
