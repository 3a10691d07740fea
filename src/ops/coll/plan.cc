#include "ops/coll/plan.h"

#include <algorithm>
#include <array>

#include "ops/coll/turn_board.h"

namespace brant::coll {
namespace {

using Kind = CollectiveKind;

constexpr std::uint64_t kMessagePiece = 256 << 10;
constexpr std::uint64_t kMessagesOfRound = 1 << 20;  // what a member holds of one round's messages
/// Of each edge: so small that there may be many edges between two members.
constexpr std::uint64_t kNeighbourPiece = 64 << 10;
constexpr std::uint64_t kSlicePieceLeast = 4 << 10;
constexpr std::uint64_t kReadPiece = 128 << 10;  // what is combined is read by others while it is in their cache

bool has_slices(Kind kind) noexcept { return kind == Kind::allreduce || kind == Kind::reduce; }

std::uint64_t whole(std::uint64_t bytes, std::size_t element) noexcept { return bytes / element * element; }
std::uint64_t rounds_of(std::uint64_t bytes, std::uint64_t piece) noexcept {
  return bytes == 0 ? 1 : (bytes + piece - 1) / piece;
}

/// Slices begin at whole lines where elements let them.
std::uint64_t slice_piece(std::uint64_t room, const PlanQuery& query) noexcept {
  const std::uint64_t piece = whole(room / query.members, query.element);
  const bool fits_lines = kLineBytes % query.element == 0 && piece >= kLineBytes;
  return fits_lines ? whole(piece, kLineBytes) : piece;
}

/// Every member's slice once, and one round more until the last of them are known.
Plan in_slices(Algorithm algorithm, std::uint64_t piece, const PlanQuery& query) noexcept {
  return {algorithm, piece, rounds_of(query.bytes, piece * query.members) + 1};
}

/// Turns in which nobody reads: where buffers are, who can read them, and that all have read.
Plan in_reads(const PlanQuery& query) noexcept {
  const std::uint64_t piece = whole(kReadPiece, query.element);
  constexpr std::uint64_t kOtherTurns = 2;  // the second one reads already
  if (query.kind == Kind::allreduce) {
    const Plan slices = in_slices(Algorithm::reads, piece, query);
    return {Algorithm::reads, piece, slices.rounds + kOtherTurns};
  }
  return {Algorithm::reads, piece, rounds_of(query.bytes, piece) + kOtherTurns};
}

/// To one root all come at once: more than a few members combine in slices sooner than one does for all.
bool has_reads(const PlanQuery& query) noexcept {
  constexpr unsigned kReadersOfOne = 3;
  return !query.uneven && query.kind != Kind::barrier && (query.kind != Kind::reduce || query.members <= kReadersOfOne);
}

/// In how many parts a room holds what a member gives.
std::uint64_t shares_of(const PlanQuery& query) noexcept { return shares_room(query.kind) ? query.members : 1; }

bool fits_lines(const PlanQuery& query) noexcept {
  return !query.uneven && query.bytes <= kLinePayload / shares_of(query);
}
Plan in_lines(const PlanQuery& query) noexcept { return {Algorithm::lines, query.bytes, 1}; }

std::uint64_t slice_of_slot(const PlanQuery& query) noexcept { return slice_piece(kSlotBytes / 2, query); }
std::uint64_t piece_of_slot(const PlanQuery& query) noexcept {
  return whole(kSlotBytes / shares_of(query), query.element);
}
Plan in_slots(const PlanQuery& query) noexcept {
  const std::uint64_t piece = piece_of_slot(query);
  if (piece == 0) return {};
  return {Algorithm::slots, piece, rounds_of(query.bytes, piece)};
}

Plan on_board(const PlanQuery& query) noexcept {
  if (is_of_neighbours(query.kind)) return {};
  if (fits_lines(query)) return in_lines(query);
  if (has_reads(query) && query.bytes >= query.bands.reads_from / shares_of(query)) return in_reads(query);
  if (has_slices(query.kind) && query.bytes >= query.bands.slices_from) {
    const std::uint64_t piece = slice_of_slot(query);
    if (piece != 0) return in_slices(Algorithm::slices, piece, query);
  }
  return in_slots(query);
}

/// What all show fits into one slot.
bool fits_hosts(const PlanQuery& query) noexcept {
  return !query.uneven && !is_of_neighbours(query.kind) && query.bytes <= kSlotBytes / query.members / shares_of(query);
}

/// One vector of each host is combined in a slot.
std::uint64_t piece_of_partials(const PlanQuery& query) noexcept {
  return query.houses == 0 ? 0 : whole(kSlotBytes / query.houses, query.element);
}
bool has_partials(const PlanQuery& query) noexcept {
  return query.hosts && query.any_order && has_slices(query.kind) && piece_of_partials(query) != 0;
}
/// Of a call that has partials, or fits hosts.
Plan by_hosts(const PlanQuery& query) noexcept {
  if (!has_partials(query)) return {Algorithm::hosts, query.bytes, 1};
  const std::uint64_t piece = piece_of_partials(query);
  return {Algorithm::partials, piece, rounds_of(query.bytes, piece)};
}

Plan by_messages(const PlanQuery& query) noexcept {
  if (query.kind == Kind::barrier) return {Algorithm::dissemination, 0, 1};
  if (query.kind == Kind::broadcast) return {Algorithm::binomial, kMessagePiece, rounds_of(query.bytes, kMessagePiece)};
  if (is_of_neighbours(query.kind)) {
    const std::uint64_t piece = whole(kNeighbourPiece, query.element);
    return {Algorithm::direct, piece, rounds_of(query.bytes, piece)};
  }
  const std::uint64_t fair = std::clamp(kMessagesOfRound / query.members, kSlicePieceLeast, kMessagePiece);
  const std::uint64_t piece = whole(fair, query.element);  // elements have 4096 bytes at most
  if (has_slices(query.kind) && query.bytes >= query.bands.pairwise_from)
    return in_slices(Algorithm::pairwise, piece, query);
  return {Algorithm::direct, piece, rounds_of(query.bytes, piece)};
}

/// Of a call that the way carries out.
Plan by_way(const PlanQuery& query) noexcept {
  if (query.way == TeamWay::messages) return by_messages(query);
  if (query.way == TeamWay::hosts) return by_hosts(query);
  if (query.kind == Kind::barrier) return in_lines(query);
  switch (query.way) {
    case TeamWay::lines: return in_lines(query);
    case TeamWay::slices: return in_slices(Algorithm::slices, slice_of_slot(query), query);
    case TeamWay::reads: return in_reads(query);
    default: return in_slots(query);
  }
}

}  // namespace

const char* why_not_forced(const PlanQuery& query) noexcept {
  constexpr const char* kLongElements = "its elements are longer than the room for them in a slot";
  if (query.members == 1 || query.way == TeamWay::automatic || query.way == TeamWay::messages) return nullptr;
  if (is_of_neighbours(query.kind)) return "calls of neighbours go by messages only";
  if (query.way == TeamWay::hosts) {
    if (!query.hosts) return "the members are not on several hosts of which some share one";
    return has_partials(query) || fits_hosts(query) ? nullptr
                                                    : "what all members show does not fit into a slot of 64 KiB";
  }
  if (!query.board) return "the members do not all share memory";
  if (query.kind == Kind::barrier) return nullptr;
  switch (query.way) {
    case TeamWay::lines:
      return fits_lines(query) ? nullptr : "what a member gives does not fit into a line of 48 bytes";
    case TeamWay::slices:
      if (!has_slices(query.kind)) return "only allreduce and reduce are carried out by slices";
      return slice_of_slot(query) != 0 ? nullptr : kLongElements;
    case TeamWay::reads:
      if (query.uneven) return "not all members know the sizes of all blocks";
      return has_reads(query) ? nullptr : "more than three members do not read to one root";
    default: return piece_of_slot(query) != 0 ? nullptr : kLongElements;
  }
}

std::string_view algorithm_name(Algorithm algorithm) noexcept {
  constexpr std::array<std::string_view, 11> kNames = {"alone",    "lines",  "slots",    "slices",
                                                       "reads",    "hosts",  "partials", "dissemination",
                                                       "binomial", "direct", "pairwise"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

Plan plan_for(const PlanQuery& query) noexcept {
  if (query.members == 1) return {Algorithm::alone, query.bytes, 1};
  if (query.way != TeamWay::automatic) return by_way(query);
  if (query.board) {
    const Plan plan = on_board(query);
    if (plan.algorithm != Algorithm::alone) return plan;
  }
  // Above, rounds that wait for each other cost more than what all members send at the same time.
  const bool partials = has_partials(query) && query.bytes <= kSlotBytes;
  if (query.hosts && (partials || (!has_partials(query) && fits_hosts(query)))) return by_hosts(query);
  return by_messages(query);
}

}  // namespace brant::coll
