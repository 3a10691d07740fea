#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "brant/coll/collectives.h"
#include "brant/coll/way.h"

namespace brant::coll {

/// How a call is carried out. Those of shared memory first, each for more bytes than the one before it.
enum class Algorithm : std::uint8_t {
  alone,          ///< A team of one.
  lines,          ///< Everything fits into the lines of the board.
  slots,          ///< Every member puts what it gives into its slot, and takes what concerns it out of the others'.
  slices,         ///< Each member combines one slice for all.
  reads,          ///< Every member reads the others' buffers where they are, if all that are read can be mapped.
  hosts,          ///< Those of one host show on its board, and one of each host exchanges messages with the others.
  partials,       ///< The same, and what it exchanges is the combination of what those of its host give.
  dissemination,  ///< Messages: each hears of twice as many in each round.
  binomial,       ///< Messages: a tree below the root.
  direct,         ///< Messages: what a member gives goes straight to those whom it concerns.
  pairwise,       ///< Messages: each member combines one slice for all.
};
std::string_view algorithm_name(Algorithm algorithm) noexcept;

/// More of them share no memory.
inline constexpr unsigned kBoardMembersMax = 64;

/// From how many bytes on which algorithm is the better one. Equal at all members of a team.
struct Bands {
  std::uint64_t slices_from = 8 << 10;     ///< Shared memory: below, every member combines everything.
  std::uint64_t reads_from = 32 << 10;     ///< Shared memory: below, two copies cost less than to agree on one.
  std::uint64_t pairwise_from = 32 << 10;  ///< The same of messages.
};

/// What all members of a team know of a call before they exchange anything.
struct PlanQuery {
  CollectiveKind kind = CollectiveKind::none;
  unsigned members = 1;
  std::uint64_t bytes = 0;  ///< As Work::bytes.
  std::size_t element = 1;
  bool board = false;  ///< They share memory.
  Bands bands;
  bool hosts = false;      ///< Some of them share memory with each other: see Houses.
  unsigned houses = 0;     ///< Then: on how many hosts they are.
  bool any_order = false;  ///< See combines_in_any_order.
  bool uneven = false;     ///< As Work::uneven: `bytes`, and so the rounds of the plan, are what this member knows of.
  TeamWay way = TeamWay::automatic;
};

/// What a member gives is a block for each.
constexpr bool shares_room(CollectiveKind kind) noexcept {
  return kind == CollectiveKind::alltoall || kind == CollectiveKind::scatter || kind == CollectiveKind::reduce_scatter;
}

/// Of a graph of the members: each exchanges messages with its neighbours alone.
constexpr bool is_of_neighbours(CollectiveKind kind) noexcept {
  return kind == CollectiveKind::neighbour_allgather || kind == CollectiveKind::neighbour_alltoall;
}

struct Plan {
  Algorithm algorithm = Algorithm::alone;
  /// Bytes of the vector, of each block, or of each slice, that one round moves: whole elements.
  std::uint64_t piece = 0;
  std::uint64_t rounds = 1;

  bool operator==(const Plan&) const noexcept = default;
};

/// Null, or why the way that is forced does not carry out such a call; `plan_for` has no plan for it then.
const char* why_not_forced(const PlanQuery& query) noexcept;
/// A pure function: all members come to the same plan.
Plan plan_for(const PlanQuery& query) noexcept;

/// The query of a call whose buffers cannot be read in place, as all have found.
constexpr PlanQuery without_reads(PlanQuery query) noexcept {
  query.bands.reads_from = ~std::uint64_t{0};
  if (query.way == TeamWay::reads) query.way = TeamWay::automatic;
  return query;
}

/// Whether it goes from the board of one host to those of others.
constexpr bool is_of_hosts(const Plan& plan) noexcept {
  return plan.algorithm == Algorithm::hosts || plan.algorithm == Algorithm::partials;
}

/// Whether the plan is one of shared memory.
constexpr bool is_of_board(const Plan& plan) noexcept {
  return plan.algorithm >= Algorithm::lines && plan.algorithm <= Algorithm::reads;
}

}  // namespace brant::coll
