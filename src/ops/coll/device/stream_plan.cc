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

/// Of one block.
std::uint64_t line_bytes_max(unsigned members) noexcept { return StreamBoard::lines_from_each(members) * 8; }
bool fits_lines(const StreamQuery& query) noexcept {
  return query.bytes <= line_bytes_max(query.members) * kStreamBlocksMax;
}

bool has_slices(const StreamQuery& query) noexcept {
  return (query.kind == Kind::allreduce || query.kind == Kind::reduce) && query.members > 2;
}

/// There is a choice.
bool has_ways(const StreamQuery& query) noexcept { return query.members > 1 && query.kind != Kind::barrier; }

bool goes_by_lines(const StreamQuery& query) noexcept {
  if (!has_ways(query) || !fits_lines(query)) return false;
  if (query.way != StreamWay::automatic) return query.way == StreamWay::lines;
  return query.bytes <= query.bands.lines_to[query.members];
}

bool goes_by_slices(const StreamQuery& query) noexcept {
  if (!has_slices(query)) return false;
  if (query.way != StreamWay::automatic) return query.way == StreamWay::slices;
  return query.bytes >= query.bands.slices_from;
}

}  // namespace

const char* why_not_forced(const StreamQuery& query) noexcept {
  if (!has_ways(query)) return nullptr;
  if (query.way == StreamWay::lines && !fits_lines(query))
    return "it does not fit into the lines, which the team's options force; StreamWay::automatic carries it out";
  if (query.way == StreamWay::slices && !has_slices(query))
    return "only allreduce and reduce of three members or more go by slices, which the team's options force; "
           "StreamWay::automatic carries it out";
  return nullptr;
}

const char* why_not_by_kernels(const Work& work, unsigned members, StreamWay way) noexcept {
  const Folding& how = work.folding;
  if (!work.blocks.empty())
    return "kernels do not combine blocks of different sizes. Wait for the stream, and use Team::run";
  if (how.op == ReduceOp::user)
    return "kernels do not combine by a function of the program, which is the host's. Wait for the stream, and use "
           "Team::run";
  if (how.op == ReduceOp::min_place || how.op == ReduceOp::max_place)
    return "kernels do not combine elements of two parts. Wait for the stream, and use Team::run";
  return why_not_forced({work.kind, members, work.bytes, {}, way});
}

StreamPlan stream_plan_for(const StreamQuery& query) noexcept {
  const auto& [kind, members, bytes, bands, way] = query;
  StreamPlan plan;
  if (goes_by_lines(query)) {
    plan.algorithm = StreamAlgorithm::lines;
    share_out(plan, bytes, std::min(bands.line_bytes_of_block, line_bytes_max(members)), kStreamBlocksMax);
    plan.piece = plan.share;
    return plan;
  }
  share_out(plan, bytes, bands.room_bytes_of_block, kStreamBlocksMax);
  if (goes_by_slices(query)) {
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
