#include "cli/calibrate/collectives.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include <fmt/format.h>

#include "bench/runner/options.h"
#include "bench/runner/us_since.h"
#include "brant/coll/team.h"
#include "brant/device.h"
#include "ops/coll/measured_bands.h"

namespace brant::cli::calibrate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSmallest = 1 << 10;
constexpr std::uint64_t kLargest = 512 << 10;
constexpr std::uint64_t kLargestOfStreams = 4 << 20;
constexpr int kTurnsOfWays =
    5;  ///< Ways take turns so often, and the least counts: a slow moment hits one turn of each.
constexpr double kBudgetOfWayUs = 5'000;  ///< Of one size and way in one turn.
constexpr int kCallsOfTrial = 2, kCallsMin = 3, kCallsMax = 200;
constexpr int kTriesUntilMapped = 200;
constexpr double kTie = 0.03;  ///< What differs by less is as good.

/// What is called, on memory that others can map, and as many bytes of it.
class Caller {
 public:
  Caller(Runtime& runtime, CollectiveKind kind, MemoryKind memory, std::uint64_t largest)
      : kind_(kind), in_(runtime.allocate(memory, largest)), out_(runtime.allocate(memory, largest)) {}

  [[nodiscard]] Collective call(std::uint64_t bytes) const {
    const Buffer in(in_.data(), bytes, in_.kind()), out(out_.data(), bytes, out_.kind());
    if (kind_ == CollectiveKind::broadcast) return broadcast(out, 0);
    return allreduce(in, out, DataType::i32, ReduceOp::max);
  }
  [[nodiscard]] std::string_view name() const { return collective_name(kind_); }

 private:
  CollectiveKind kind_;
  Memory in_, out_;
};

class CollectiveMeasurement {
 public:
  explicit CollectiveMeasurement(bench::Session& session) : session_(session), runtime_(session.runtime()) {}

  CollectiveFindings run(bool wanted) {
    if (!all_want(wanted)) {
      findings_.notes.push_back("not measured: collectives: on a busy machine they wait for cores");
      return session_.reports() ? std::move(findings_) : CollectiveFindings{};
    }
    try {
      measure_host();
    } catch (const Error& error) {
      // All are refused alike, by what they have agreed on.
      if (error.status() != Status::not_supported) throw;
      findings_.notes.push_back(fmt::format("not measured: collectives of the host: {}", error.what()));
    }
    measure_streams();
    return session_.reports() ? std::move(findings_) : CollectiveFindings{};
  }

 private:
  [[nodiscard]] unsigned members() const { return static_cast<unsigned>(runtime_.size()); }

  /// As rank 0 has it.
  bool all_want(bool wanted) {
    std::uint8_t wish = wanted ? 1 : 0;
    require(all_.run(broadcast(Buffer(&wish, 1, MemoryKind::host), 0)), all_);
    return wish != 0;
  }

  void measure_host() {
    Team slots = Team::world(runtime_, {.way = TeamWay::slots}),
         slices = Team::world(runtime_, {.way = TeamWay::slices}),
         reads = Team::world(runtime_, {.way = TeamWay::reads});
    const Caller sum(runtime_, CollectiveKind::allreduce, MemoryKind::host, kLargest);
    const Caller copy(runtime_, CollectiveKind::broadcast, MemoryKind::host, kLargest);
    const WayTable by_slices = compare(sum, slots, slices);
    if (!is_mapped(reads, sum) || !is_mapped(reads, copy)) {
      findings_.notes.push_back("not measured: collectives that read memory where it is: it cannot be mapped");
    } else {
      WayTable sums = compare(sum, slots, reads);
      // It is to be better than the better one of the others.
      for (std::size_t i = 0; i < sums.points.size(); ++i)
        sums.points[i].few_us = std::min(sums.points[i].few_us, by_slices.points[i].many_us);
      add_band(coll::kReadsBand, std::max(crossing(sums), crossing(compare(copy, slots, reads))));
    }
    add_band(coll::kSlicesBand, crossing(by_slices));
  }

  /// The first calls with new memory go another way, at all members alike, until word of it has come.
  bool is_mapped(Team& team, const Caller& caller) {
    for (int tries = 0; tries < kTriesUntilMapped; ++tries) {
      require(team.run(caller.call(kLargest)), team);
      if (team.journal().back().algorithm == team_way_name(TeamWay::reads)) return true;
      runtime_.worker().progress();
    }
    return false;
  }

  void measure_streams() {
    if (runtime_.device_kind() == MemoryKind::host) return;
    const unsigned count = members();
    if (count > coll::kStreamMembersMax) return;
    Team lines = Team::world(runtime_, {.stream_way = StreamWay::lines}),
         slots = Team::world(runtime_, {.stream_way = StreamWay::slots});
    if (!lines.prepare_streams().ok() || !slots.prepare_streams().ok()) {
      findings_.notes.push_back("not measured: collectives of streams: the log says why");
      return;
    }
    const Caller sum(runtime_, CollectiveKind::allreduce, runtime_.device_kind(), kLargestOfStreams);
    const std::uint64_t from = crossing(compare_on_streams(sum, lines, slots));
    add_band(coll::kKernelLinesBand, from - 1);
    if (count < 3) return;
    Team slices = Team::world(runtime_, {.stream_way = StreamWay::slices});
    if (!slices.prepare_streams().ok()) return;
    add_band(coll::kKernelSlicesBand, crossing(compare_on_streams(sum, slots, slices)));
  }

  void add_band(const char* name, std::uint64_t bytes) { findings_.bands.push_back({name, members(), bytes}); }

  WayTable compare(const Caller& caller, Team& few, Team& many) {
    const auto time = [&](Team& team, const Collective& call, int calls) {
      require(team.run(barrier()), team);
      const auto begin = Clock::now();
      for (int i = 0; i < calls; ++i) require(team.run(call), team);
      return bench::us_since(begin) / calls;
    };
    return fill(caller, kLargest, {std::string(caller.name()), way_of(few, caller), way_of(many, caller), {}},
                [&](bool is_few, const Collective& call, int calls) { return time(is_few ? few : many, call, calls); });
  }

  WayTable compare_on_streams(const Caller& caller, Team& few, Team& many) {
    Stream stream = runtime_.device().create_stream();
    const auto time = [&](Team& team, const Collective& call, int calls) {
      if (team.explain_on_stream(call).empty()) return std::numeric_limits<double>::infinity();  // too much for lines
      require(team.run(barrier()), team);
      const auto begin = Clock::now();
      for (int i = 0; i < calls; ++i) require({team.enqueue(call, stream), 0}, team);
      require({stream.synchronize(), 0}, team);
      if (const std::string fault = team.fault(); !fault.empty()) throw Error(Status::device_failed, fault);
      return bench::us_since(begin) / calls;
    };
    const Collective small = caller.call(kSmallest);
    return fill(caller, kLargestOfStreams,
                {fmt::format("{}, streams", caller.name()),
                 std::string(few.explain_on_stream(small)),
                 std::string(many.explain_on_stream(small)),
                 {}},
                [&](bool is_few, const Collective& call, int calls) { return time(is_few ? few : many, call, calls); });
  }

  static std::string way_of(Team& team, const Caller& caller) {
    return std::string(team.explain(caller.call(kLargest)));
  }

  template <typename Time>
  WayTable fill(const Caller& caller, std::uint64_t largest, WayTable table, Time&& time) {
    for (std::uint64_t bytes = kSmallest; bytes <= largest; bytes *= 2) {
      const Collective call = caller.call(bytes);
      WayPoint point{bytes, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
      const int calls = calls_after(time(false, call, kCallsOfTrial));
      for (int turn = 0; turn < kTurnsOfWays; ++turn) {
        point.few_us = std::min(point.few_us, time(true, call, calls));
        point.many_us = std::min(point.many_us, time(false, call, calls));
      }
      table.points.push_back(point);
    }
    findings_.tables.push_back(table);
    return table;
  }

  /// As many as rank 0 finds fit for all.
  int calls_after(double us) {
    std::int32_t calls = static_cast<std::int32_t>(std::clamp<double>(kBudgetOfWayUs / us, kCallsMin, kCallsMax));
    require(all_.run(broadcast(Buffer(&calls, sizeof(calls), MemoryKind::host), 0)), all_);
    return calls;
  }

  static void require(const OpResult& result, const Team& team) {
    if (!result.ok()) throw Error(result.status, fmt::format("calibrate: a collective failed: {}", team.fault()));
  }

  bench::Session& session_;
  Runtime& runtime_;
  Team all_ = Team::world(runtime_);
  CollectiveFindings findings_;
};

std::string us_text(double us) { return us < 1e9 ? fmt::format("{:.2f}", us) : "-"; }

}  // namespace

std::uint64_t crossing(const WayTable& table) noexcept {
  std::uint64_t from = table.points.empty() ? 0 : table.points.back().bytes * 2;
  for (auto point = table.points.rbegin(); point != table.points.rend(); ++point) {
    if (point->many_us > point->few_us * (1 + kTie)) break;
    from = point->bytes;
  }
  return from;
}

CollectiveFindings measure_collectives(bench::Session& session, bool wanted) {
  return CollectiveMeasurement(session).run(wanted);
}

std::string to_text(const CollectiveFindings& findings, unsigned members) {
  std::string text;
  for (const WayTable& table : findings.tables) {
    text += fmt::format("{} of {} members, microseconds\n{:>8}  {:>13}  {:>13}\n", table.call, members, "bytes",
                        table.few, table.many);
    for (const WayPoint& point : table.points)
      text += fmt::format("{:>8}  {:>13}  {:>13}\n", bench::format_size(static_cast<std::size_t>(point.bytes)),
                          us_text(point.few_us), us_text(point.many_us));
    text += '\n';
  }
  for (const CollectiveBand& band : findings.bands)
    text += fmt::format("collectives of {} members: {} {} {} bytes\n", band.members, band.name,
                        band.name == coll::kKernelLinesBand ? "up to" : "from", band.bytes);
  for (const std::string& note : findings.notes) text += note + "\n";
  return text;
}

}  // namespace brant::cli::calibrate
