#include "bench/rma/runner.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include <fmt/format.h>

#include "bench/runner/plan.h"
#include "bench/runner/us_since.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Samples begin in this part of the time for which the target computes.
constexpr double kPartOfSpan = 0.8;

/// Numbers that the compiler cannot know in advance, and nothing else.
void compute_for(std::chrono::milliseconds span) {
  static volatile std::uint64_t result = 1;
  constexpr int kStepsPerLook = 1000;
  for (const Clock::time_point begin = Clock::now(); Clock::now() - begin < span;) {
    std::uint64_t value = result;
    for (int i = 0; i < kStepsPerLook; ++i) value = value * 6364136223846793005u + 1442695040888963407u;
    result = value;
  }
}

/// As the other benchmarks repeat: blocking transfers as round trips, the rest as windows.
Plan plan_of(const RmaBench& bench, const RmaCase& which, std::size_t players) {
  Options options;
  options.kind = which.sync == RmaSync::block ? Kind::latency : Kind::bandwidth;
  options.iterations = bench.iterations;
  options.warmup = bench.warmup;
  options.rival = players > 1 ? Rival::ucx : Rival::none;
  return plan_for(options, which.bytes);
}

}  // namespace

RmaRunner::RmaRunner(const RmaBench& bench, RmaMeeting& meeting, const Machine& machine, MemoryKind device)
    : bench_(bench),
      meeting_(meeting),
      machine_(machine),
      device_(device),
      rows_(meeting.leads() ? bench.json : std::string()) {}

void RmaRunner::print_title(const std::string& title, const std::vector<RmaPattern>& patterns) const {
  if (!meeting_.leads()) return;
  std::string names;
  for (const RmaPattern& pattern : patterns) names += " " + pattern_name(pattern);
  fmt::print(
      "# brant bench rma: {}, 2 ranks, patterns{}; g: {} memory, s: shared host memory, p: private host memory\n",
      title, names, device_ == MemoryKind::host ? "no" : memory_kind_name(device_));
  fmt::print(
      "# block: one transfer until it is done; flood, notify: a window of {}; inject: the posts of a window, for "
      "each; GB = 1e9 bytes\n",
      bench_.window);
  if (bench_.busy_target)
    fmt::print(
        "# the target computes for {} ms at a time; 'waited': transfers last until it is free again; '?': too "
        "short a time to tell (--busy-ms)\n",
        bench_.busy_span.count());
  fmt::print("# brant {}, UCX {}, {}{}{}\n", machine_.brant, machine_.ucx.empty() ? "none" : machine_.ucx, machine_.cpu,
             machine_.gpu.empty() ? "" : ", ", machine_.gpu);
  fmt::print("{}\n", rma_header());
  std::fflush(stdout);
}

void RmaRunner::run(const std::vector<RmaPlayer*>& players, const std::vector<RmaPattern>& patterns) {
  for (const RmaPattern& pattern : patterns) {
    const std::vector<RmaCase> cases = cases_of(bench_, pattern);
    for (RmaPlayer* player : players) {
      const auto plays = [player](const RmaCase& which) { return player->plays(which); };
      if (std::any_of(cases.begin(), cases.end(), plays)) player->use(pattern);
    }
    for (const RmaCase& which : cases) run_case(players, which);
  }
  meeting_.barrier();
}

void RmaRunner::run_case(const std::vector<RmaPlayer*>& players, const RmaCase& which) {
  std::vector<Turn> turns;
  for (RmaPlayer* player : players) {
    if (player->plays(which)) turns.emplace_back().player = player;
  }
  const Plan plan = plan_of(bench_, which, turns.size());
  for (Turn& turn : turns) {
    meeting_.barrier();
    if (bench_.check) turn.player->check(which, plan.checked);
    meeting_.barrier();
    std::vector<double> warmup(plan.warmup);
    turn.player->measure(which, warmup);
    turn.idle_us = summarize(warmup).p50;
  }
  for (std::size_t round = 0; round < plan.rounds; ++round) {
    const std::size_t part = plan.iterations * (round + 1) / plan.rounds - plan.iterations * round / plan.rounds;
    for (Turn& turn : turns) {
      meeting_.barrier();
      bench_.busy_target ? play_beside_busy_target(turn, which, part) : play(turn, which, part);
    }
  }
  meeting_.barrier();
  for (Turn& turn : turns) report(turn, which);
}

void RmaRunner::play(Turn& turn, const RmaCase& which, std::size_t count) {
  std::vector<double> batch(count);
  turn.player->measure(which, batch);
  turn.samples.insert(turn.samples.end(), batch.begin(), batch.end());
}

void RmaRunner::play_beside_busy_target(Turn& turn, const RmaCase& which, std::size_t count) {
  meeting_.target_turns_away();
  if (!meeting_.leads()) return compute_for(bench_.busy_span);
  const Clock::time_point begin = Clock::now();
  const double last_us = kPartOfSpan * std::chrono::duration<double, std::micro>(bench_.busy_span).count();
  for (std::size_t i = 0; i < count; ++i) {
    double sample = 0;
    turn.player->measure(which, std::span(&sample, 1));
    turn.samples.push_back(sample);
    if (us_since(begin) > last_us) return;
  }
}

void RmaRunner::report(Turn& turn, const RmaCase& which) {
  if (!meeting_.leads()) return;
  RmaRow row;
  row.which = which;
  row.local = kind_of(which.pattern.local);
  row.remote = kind_of(which.pattern.remote);
  row.path = turn.player->path();
  row.peer = turn.player->peer();
  row.peer_version = turn.player->peer_version();
  row.busy_target = bench_.busy_target;
  row.check = bench_.check && row.peer.empty();
  row.us = summarize(turn.samples);
  if (bench_.busy_target) row.waited = waited_for_target(row.us.p50, turn.idle_us, bench_.busy_span);
  rows_.append(to_json(row, machine_));
  fmt::print("{}\n", rma_line(row));
  std::fflush(stdout);
}

}  // namespace brant::bench
