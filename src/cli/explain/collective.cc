#include "cli/explain/collective.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "brant/base/status.h"
#include "ops/coll/device/stream_plan.h"
#include "ops/coll/measured_bands.h"
#include "ops/coll/plan.h"

namespace brant::cli::explain {
namespace {

using coll::Algorithm;
using coll::Plan;
using coll::PlanQuery;
using coll::StreamAlgorithm;
using coll::StreamPlan;
using coll::StreamQuery;
using Json = nlohmann::ordered_json;

constexpr std::size_t kFloat = 4;

bool has_blocks(CollectiveKind kind) noexcept {
  return coll::shares_room(kind) || kind == CollectiveKind::allgather || kind == CollectiveKind::gather;
}

std::string_view words_for(Algorithm algorithm) noexcept {
  constexpr std::array<std::string_view, 11> kWords = {
      "a member alone copies",
      "each member writes one line of the board, and reads those of the others",
      "each member shows a piece in its slot of the board, and takes what concerns it",
      "each member combines one slice for all, over slots of the board",
      "each member reads the others' buffers where they are",
      "those of one host show on its board, and one of each host exchanges messages with the others",
      "those of one host show on its board, and one of each host exchanges what they give in sum with the others",
      "messages: each hears of twice as many in each round",
      "messages: a tree below the root",
      "messages: straight to those whom it concerns",
      "messages: each member combines one slice for all"};
  return kWords[static_cast<std::size_t>(algorithm)];
}

std::string_view words_for(StreamAlgorithm algorithm) noexcept {
  constexpr std::array<std::string_view, 4> kWords = {
      "a member alone copies", "each word that a member writes to the others says by itself that it is there",
      "each member writes pieces to the others, and a word behind each that says so",
      "each member combines one slice for all"};
  return kWords[static_cast<std::size_t>(algorithm)];
}

std::size_t element_of(const CollectiveQuestion& question) noexcept {
  return question.kind == CollectiveKind::barrier ? 1 : kFloat;
}

/// Of the vector, or of one block, in whole elements.
std::uint64_t bytes_of(const CollectiveQuestion& question) noexcept {
  if (question.kind == CollectiveKind::barrier) return 0;
  const std::uint64_t bytes = has_blocks(question.kind) ? question.bytes / question.members : question.bytes;
  return bytes / kFloat * kFloat;
}

bool of_streams(const CollectiveQuestion& question) noexcept { return question.trigger != CollectiveTrigger::host; }

[[noreturn]] void refuse_way(const CollectiveQuestion& question) {
  std::string known;
  const unsigned count = of_streams(question) ? kStreamWayCount : kTeamWayCount;
  for (unsigned way = 0; way < count; ++way) {
    known += known.empty() ? "" : ", ";
    known +=
        of_streams(question) ? stream_way_name(static_cast<StreamWay>(way)) : team_way_name(static_cast<TeamWay>(way));
  }
  throw Error(Status::invalid_argument, fmt::format("there is no way '{}' of {}: use {}", question.way,
                                                    of_streams(question) ? "streams" : "the host", known));
}

void require_sense(const CollectiveQuestion& question) {
  if (question.hosts > question.members)
    throw Error(Status::invalid_argument,
                fmt::format("{} members are not on {} hosts", question.members, question.hosts));
  if (!of_streams(question)) return;
  if (question.memory != CollectiveMemory::device)
    throw Error(Status::invalid_argument, "streams and graphs carry out what lies on the device: add --memory device");
  if (question.hosts > 1 || question.members > coll::kStreamMembersMax)
    throw Error(Status::invalid_argument, fmt::format("collectives of streams are for at most {} members of one host: "
                                                      "use --trigger host",
                                                      coll::kStreamMembersMax));
}

PlanQuery query_of(const CollectiveQuestion& question) {
  PlanQuery query;
  query.kind = question.kind;
  query.members = question.members;
  query.bytes = bytes_of(question);
  query.element = element_of(question);
  query.bands = coll::bands_of(coll::measured_bands(question.bands, question.members));
  if (!team_way_from_name(question.way, query.way)) refuse_way(question);
  const bool shares = query.way != TeamWay::messages && question.members <= coll::kBoardMembersMax;
  query.board = shares && question.hosts == 1;
  query.hosts = shares && question.hosts > 1 && question.hosts < question.members;
  query.houses = query.hosts ? question.hosts : 0;
  return query;
}

StreamQuery stream_query_of(const CollectiveQuestion& question) {
  StreamQuery query{question.kind, question.members, bytes_of(question), {}};
  query.bands = coll::stream_bands_of(coll::measured_bands(question.bands, question.members), question.members);
  if (!stream_way_from_name(question.way, query.way)) refuse_way(question);
  return query;
}

std::string line_of(const Plan& plan) {
  const std::string_view rounds = coll::is_of_board(plan) ? "turns" : "rounds";
  return fmt::format("{}: {}; {} {}, {} bytes at a time", coll::algorithm_name(plan.algorithm),
                     words_for(plan.algorithm), plan.rounds, rounds, plan.piece);
}
std::string line_of(const StreamPlan& plan) {
  return fmt::format("{}: {}; {} block{} of {} bytes each, {} round{}", coll::stream_algorithm_name(plan.algorithm),
                     words_for(plan.algorithm), plan.blocks, plan.blocks == 1 ? "" : "s", plan.share, plan.rounds,
                     plan.rounds == 1 ? "" : "s");
}

Json json_of(const Plan& plan) {
  return {{"algorithm", coll::algorithm_name(plan.algorithm)}, {"piece", plan.piece}, {"rounds", plan.rounds}};
}
Json json_of(const StreamPlan& plan) {
  return {{"algorithm", coll::stream_algorithm_name(plan.algorithm)},
          {"blocks", plan.blocks},
          {"share", plan.share},
          {"piece", plan.piece},
          {"rounds", plan.rounds}};
}

constexpr std::array<std::string_view, 3> kMemories = {"host", "heap", "device"};
constexpr std::array<std::string_view, 3> kTriggers = {"host", "stream", "graph"};

/// What was asked, and what is the same for all answers.
class WayReport {
 public:
  WayReport(const CollectiveQuestion& question, bool json) : json_(json) {
    const std::string_view memory = kMemories[static_cast<std::size_t>(question.memory)];
    const std::string_view trigger = kTriggers[static_cast<std::size_t>(question.trigger)];
    told_ = {{"collective", collective_name(question.kind)},
             {"bytes", question.bytes},
             {"ranks", question.members},
             {"hosts", question.hosts},
             {"memory", memory},
             {"trigger", trigger},
             {"way", question.way}};
    text_ = fmt::format("{} of {} bytes of f32 by {} members on {}", collective_name(question.kind), question.bytes,
                        question.members, question.hosts == 1 ? "one host" : fmt::format("{} hosts", question.hosts));
    if (question.memory == CollectiveMemory::device) text_ += ", in memory of devices";
    if (of_streams(question))
      text_ += fmt::format(", carried out by {}", question.trigger == CollectiveTrigger::graph ? "graphs" : "streams");
    text_ += question.way == "automatic" ? "\n" : fmt::format(", by {}, which is forced\n", question.way);
  }

  template <typename AnyPlan>
  void plan(const AnyPlan& plan) {
    told_["plan"] = json_of(plan);
    add(line_of(plan));
  }
  void plan_of_private_memory(const Plan& plan) {
    told_["plan_of_private_memory"] = json_of(plan);
    add(fmt::format("where a buffer is not of Runtime::allocate, {}", line_of(plan)));
  }
  void staged() {
    told_["staged"] = true;
    add("before and after it, copies from and to pinned memory of the host, of the size of what is given and got");
  }
  void note(std::string_view text) { add(text); }
  /// Where ways change, and whether that was measured.
  void band(const char* name, const char* side, std::uint64_t bytes, bool measured, const std::string& file) {
    told_["bands"][name] = {{"bytes", bytes}, {"measured", measured}};
    add(fmt::format(
        "{} {} {} bytes, which {}", name, side, bytes,
        measured ? fmt::format("was measured: {}", file) : "is built in: `brant calibrate` measures this machine"));
  }
  CollectiveAnswer refused(const char* why) {
    told_["refused"] = why;
    add(fmt::format("refused: {}", why));
    return answer(false);
  }
  [[nodiscard]] CollectiveAnswer answer(bool serves = true) const {
    return {json_ ? told_.dump(2) + "\n" : text_, serves};
  }

 private:
  void add(std::string_view line) { text_ += fmt::format("  {}\n", line); }

  const bool json_;
  Json told_;
  std::string text_;
};

CollectiveAnswer explain_on_stream(const CollectiveQuestion& question, WayReport& report) {
  const StreamQuery query = stream_query_of(question);
  if (const char* why = coll::why_not_forced(query)) return report.refused(why);
  report.plan(coll::stream_plan_for(query));
  if (question.trigger == CollectiveTrigger::graph)
    report.note("each launch of the graph carries it out with the plan of its capture");
  if (query.way != StreamWay::automatic || question.members == 1) return report.answer();
  const coll::MeasuredBands measured = coll::measured_bands(question.bands, question.members);
  report.band("kernel lines", "up to", query.bands.lines_to[question.members], measured.kernel_lines_to != 0,
              question.bands_file);
  if (question.members > 2)
    report.band("kernel slices", "from", query.bands.slices_from, measured.kernel_slices_from != 0,
                question.bands_file);
  return report.answer();
}

CollectiveAnswer explain_on_host(const CollectiveQuestion& question, WayReport& report) {
  PlanQuery query = query_of(question);
  if (const char* why = coll::why_not_forced(query)) return report.refused(why);
  const bool may_read = question.memory == CollectiveMemory::host;  // what is copied to is nothing that others map
  const Plan plan = coll::plan_for(may_read ? query : coll::without_reads(query));
  report.plan(plan);
  if (question.memory == CollectiveMemory::device) report.staged();
  if (plan.algorithm == Algorithm::reads) report.plan_of_private_memory(coll::plan_for(coll::without_reads(query)));
  if (!query.board || query.way != TeamWay::automatic || question.members == 1) return report.answer();
  const coll::MeasuredBands measured = coll::measured_bands(question.bands, question.members);
  report.band("slices", "from", query.bands.slices_from, measured.slices_from != 0, question.bands_file);
  report.band("reads", "from", query.bands.reads_from, measured.reads_from != 0, question.bands_file);
  return report.answer();
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

CollectiveAnswer explain_collective(const CollectiveQuestion& question, bool json) {
  require_sense(question);
  WayReport report(question, json);
  return of_streams(question) ? explain_on_stream(question, report) : explain_on_host(question, report);
}

}  // namespace brant::cli::explain
