#include "cli/explain/collective.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "brant/base/status.h"
#include "ops/coll/plan.h"

namespace brant::cli::explain {
namespace {

using coll::Algorithm;
using coll::Plan;
using coll::PlanQuery;

constexpr std::size_t kFloat = 4;

bool has_blocks(CollectiveKind kind) noexcept {
  return coll::shares_room(kind) || kind == CollectiveKind::allgather || kind == CollectiveKind::gather;
}

std::string_view words_for(Algorithm algorithm) noexcept {
  constexpr std::array<std::string_view, 10> kWords = {
      "a member alone copies",
      "each member writes one line of the board, and reads those of the others",
      "each member shows a piece in its slot of the board, and takes what concerns it",
      "each member combines one slice for all, over slots of the board",
      "each member reads the others' buffers where they are",
      "those of one host show on its board, and one of each host exchanges messages with the others",
      "messages: each hears of twice as many in each round",
      "messages: a tree below the root",
      "messages: straight to those whom it concerns",
      "messages: each member combines one slice for all"};
  return kWords[static_cast<std::size_t>(algorithm)];
}

PlanQuery query_of(const CollectiveQuestion& question) noexcept {
  PlanQuery query;
  query.kind = question.kind;
  query.members = question.members;
  query.bytes = has_blocks(question.kind) ? question.bytes / question.members : question.bytes;
  if (question.kind == CollectiveKind::barrier) query.bytes = 0;
  query.element = question.kind == CollectiveKind::barrier ? 1 : kFloat;
  query.bytes = query.bytes / query.element * query.element;
  query.board = question.hosts == 1 && question.members <= coll::kBoardMembersMax;
  query.hosts = question.hosts > 1 && question.hosts < question.members && question.members <= coll::kBoardMembersMax;
  return query;
}

std::string line_of(const Plan& plan) {
  const std::string_view rounds = coll::is_of_board(plan) ? "turns" : "rounds";
  return fmt::format("{}: {}; {} {}, {} bytes at a time", coll::algorithm_name(plan.algorithm),
                     words_for(plan.algorithm), plan.rounds, rounds, plan.piece);
}

nlohmann::ordered_json json_of(const Plan& plan) {
  return {{"algorithm", coll::algorithm_name(plan.algorithm)}, {"piece", plan.piece}, {"rounds", plan.rounds}};
}

}  // namespace

CollectiveKind parse_collective(const std::string& name) {
  std::string wanted = name, known;
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  for (unsigned kind = 1; kind < kCollectiveKindCount; ++kind) {
    const std::string_view each = collective_name(static_cast<CollectiveKind>(kind));
    if (each == wanted) return static_cast<CollectiveKind>(kind);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", each);
  }
  throw Error(Status::invalid_argument, fmt::format("there is no collective '{}': use {}", name, known));
}

std::string explain_collective(const CollectiveQuestion& question, bool json) {
  if (question.hosts > question.members)
    throw Error(Status::invalid_argument,
                fmt::format("{} members are not on {} hosts", question.members, question.hosts));
  const PlanQuery query = query_of(question);
  const Plan plan = coll::plan_for(query), other = coll::plan_for(coll::without_reads(query));
  const bool reads = plan.algorithm == Algorithm::reads;
  if (json) {
    nlohmann::ordered_json told = {{"collective", collective_name(question.kind)},
                                   {"bytes", question.bytes},
                                   {"ranks", question.members},
                                   {"hosts", question.hosts}};
    told["plan"] = json_of(plan);
    if (reads) told["plan_of_private_memory"] = json_of(other);
    return told.dump(2) + "\n";
  }
  std::string text = fmt::format(
      "{} of {} bytes of f32 by {} members on {}\n  {}\n", collective_name(question.kind), question.bytes,
      question.members, question.hosts == 1 ? "one host" : fmt::format("{} hosts", question.hosts), line_of(plan));
  if (reads) text += fmt::format("  where a buffer is not of Runtime::allocate, {}\n", line_of(other));
  return text;
}

}  // namespace brant::cli::explain
