#include "bench/coll/coll.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/coll/caller.h"
#include "bench/runner/options.h"
#include "bench/runner/row.h"
#include "bench/runner/statistics.h"
#include "bench/runner/us_since.h"

namespace brant::bench {
namespace {

constexpr std::size_t kSmall = 8 << 10;
constexpr std::size_t kCallsOfSample = 20;  // of small ones, whose time the clock would add to

/// The memory of one benchmark, and the calls in it.
class Calls {
 public:
  Calls(CollectiveKind kind, CollCaller& caller, std::size_t largest)
      : caller_(caller),
        kind_(kind),
        ranks_(static_cast<std::size_t>(caller.size())),
        self_(caller.rank()),
        in_(caller.allocate(largest / kFloat + ranks_)),
        out_(caller.allocate(largest / kFloat + ranks_)) {}

  /// What this size comes to: whole elements, and whole blocks of them.
  [[nodiscard]] std::size_t rounded(std::size_t bytes) const {
    const bool whole = kind_ == CollectiveKind::allreduce || kind_ == CollectiveKind::broadcast;
    const std::size_t grain = whole ? kFloat : kFloat * ranks_;
    return bytes / grain * grain;
  }

  [[nodiscard]] CollCall call(std::size_t bytes) const { return {kind_, in_.there, out_.there, bytes}; }

  void fill() {
    for (std::size_t i = 0; i < in_.floats.size(); ++i) in_.floats[i] = given(self_, i);
    const bool gives = kind_ == CollectiveKind::broadcast && self_ == 0;
    for (std::size_t i = 0; i < out_.floats.size(); ++i) out_.floats[i] = gives ? given(0, i) : -1.0f;
    caller_.bring(in_);
    caller_.bring(out_);
  }

  /// How many elements are not what they should be.
  [[nodiscard]] std::size_t wrong(std::size_t bytes) {
    if (kind_ == CollectiveKind::barrier) return 0;
    caller_.fetch(out_);
    const std::size_t all = bytes / kFloat, block = std::max<std::size_t>(1, all / ranks_);
    const std::size_t got = kind_ == CollectiveKind::reduce_scatter ? all / ranks_ : all;
    std::size_t count = 0;
    for (std::size_t i = 0; i < got; ++i) count += out_.floats[i] == expected(i, block) ? 0 : 1;
    return count;
  }

 private:
  static constexpr std::size_t kFloat = sizeof(float);

  static float given(int rank, std::size_t index) { return static_cast<float>(index % 251) + static_cast<float>(rank); }

  [[nodiscard]] float expected(std::size_t i, std::size_t block) const {
    const std::size_t first = static_cast<std::size_t>(self_) * block;
    switch (kind_) {
      case CollectiveKind::broadcast: return given(0, i);
      case CollectiveKind::allgather: return given(static_cast<int>(i / block), i % block);
      case CollectiveKind::alltoall: return given(static_cast<int>(i / block), first + i % block);
      case CollectiveKind::reduce_scatter: return total(first + i);
      default: return total(i);
    }
  }
  [[nodiscard]] float total(std::size_t index) const {
    float sum = given(0, index);
    for (int rank = 1; rank < static_cast<int>(ranks_); ++rank) sum += given(rank, index);
    return sum;
  }

  CollCaller& caller_;
  const CollectiveKind kind_;
  const std::size_t ranks_;
  const int self_;
  CollMemory in_, out_;
};

std::size_t iterations_for(std::size_t bytes) {
  constexpr std::size_t kBytesInAll = std::size_t{1} << 30;
  return std::clamp<std::size_t>(kBytesInAll / std::max<std::size_t>(bytes, 1), 20, 2000);
}

/// All processes are here.
void meet(CollCaller& caller) { static_cast<void>(caller.sum(0)); }

/// Elements that are wrong at any process.
std::size_t check(CollCaller& caller, Calls& calls, std::size_t bytes) {
  calls.fill();
  meet(caller);
  caller.call(calls.call(bytes), 1);
  return static_cast<std::size_t>(caller.sum(static_cast<double>(calls.wrong(bytes))));
}

/// Of each sample the time of the process that took longest. Calls follow each other without a barrier between them.
std::vector<double> measure(CollCaller& caller, const CollBench& bench, const CollCall& call, std::size_t samples) {
  const bool several = call.bytes <= kSmall || bench.trigger != Trigger::host;
  const std::size_t per_sample = several ? kCallsOfSample : 1;
  for (std::size_t i = 0; i < samples / 10 + 1; ++i) caller.call(call, per_sample);
  std::vector<double> us(samples);
  meet(caller);
  for (double& each : us) {
    const auto begin = std::chrono::steady_clock::now();
    caller.call(call, per_sample);
    each = us_since(begin) / static_cast<double>(per_sample);
  }
  return us;
}

/// What one size came to.
struct Outcome {
  std::size_t bytes = 0;
  std::string path;
  Summary us;
  std::size_t wrong = 0;
};

void report(CollCaller& caller, const CollBench& bench, const Outcome& outcome) {
  const Summary& us = outcome.us;
  const double algbw = us.p50 > 0 ? static_cast<double>(outcome.bytes) / us.p50 / 1e3 : 0;
  const double busbw = algbw * bus_factor(bench.kind, caller.size());
  const std::string told = bench.check ? fmt::format("{}", outcome.wrong) : "-";
  fmt::print("{:>8} {:<16} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.3f} {:>10.3f} {:>7}\n", format_size(outcome.bytes),
             outcome.path, us.min, us.p50, us.p99, algbw, busbw, told);
  nlohmann::ordered_json row;
  row["bench"] = collective_name(bench.kind);
  row["trigger"] = trigger_name(bench.trigger);
  row["memory"] = memory_kind_name(caller.memory());
  row["alloc"] = alloc_name(caller.alloc());
  row["path"] = outcome.path;
  row["bytes"] = outcome.bytes;
  row["ranks"] = caller.size();
  row["n"] = us.n;
  row["us"] = to_json(us);
  row["gb_s"] = rounded(algbw);
  row["bus_gb_s"] = rounded(busbw);
  if (bench.check) row["wrong"] = outcome.wrong;
  add_machine(row, caller.peer(), caller.machine());
  if (!caller.peer().empty()) row["peer_version"] = caller.peer_version();
  RowFile(bench.json).append(row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void run_by(CollCaller& caller, const CollBench& bench) {
  const bool reports = caller.rank() == 0;
  if (reports) {
    fmt::print("# {} by {}, {} processes, {} memory, called by the {}{}\n", collective_name(bench.kind), caller.title(),
               caller.size(), memory_kind_name(caller.memory()), trigger_name(bench.trigger),
               bench.check ? ", checked" : "");
    fmt::print("{:>8} {:<16} {:>10} {:>10} {:>10} {:>10} {:>10} {:>7}\n", "bytes", "path", "min us", "p50 us", "p99 us",
               "algbw GB/s", "busbw GB/s", "wrong");
  }
  const std::vector<std::size_t> sizes =
      bench.kind == CollectiveKind::barrier ? std::vector<std::size_t>{0} : bench.sizes;
  Calls calls(bench.kind, caller, sizes.back());
  calls.fill();
  std::size_t all_wrong = 0;
  for (const std::size_t asked : sizes) {
    Outcome outcome;
    outcome.bytes = calls.rounded(asked);
    if (bench.check) outcome.wrong = check(caller, calls, outcome.bytes);
    const std::size_t samples = bench.iterations != 0 ? bench.iterations : iterations_for(outcome.bytes);
    std::vector<double> us = measure(caller, bench, calls.call(outcome.bytes), samples);
    outcome.path = caller.path();
    caller.greatest(us);
    if (bench.check) outcome.wrong += check(caller, calls, outcome.bytes);
    outcome.us = summarize(us);
    all_wrong += outcome.wrong;
    if (reports) report(caller, bench, outcome);
  }
  if (reports) std::fflush(stdout);
  if (all_wrong != 0) throw Error(Status::internal, fmt::format("{} elements are wrong", all_wrong));
}

}  // namespace

double bus_factor(CollectiveKind kind, int ranks) noexcept {
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  if (kind == CollectiveKind::allreduce) return 2 * others;
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::barrier ? 1 : others;
}

void run_collectives(const CollBench& bench) {
  Runtime runtime;
  Team team = Team::world(runtime, {.way = bench.way, .stream_way = bench.stream_way});
  if (bench.nccl) run_by(*make_nccl_caller(runtime, team, bench), bench);
  run_by(*make_brant_caller(runtime, team, bench), bench);
}

void run_collectives_of_mpi(const CollBench& bench, const mpi::Choice& choice) {
  run_by(*make_mpi_caller(choice), bench);
}

}  // namespace brant::bench
