#include "job.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <fmt/format.h>

#include "brant/device.h"
#include "field.h"
#include "models.h"
#include "program.h"
#include "report.h"
#include "row.h"
#include "together.h"

namespace jacobi {
namespace {

using brant::MemoryKind;
using Clock = std::chrono::steady_clock;

constexpr int kCopies = 5;

void require_mode(const Options& options, MemoryKind kind) {
  if (options.model != Model::halo || !needs_device(options.halo) || !brant::host_accessible(kind)) return;
  throw brant::Error(brant::Status::not_supported,
                     fmt::format("--halo {} is for memory of a device, and this is {} memory: use "
                                 "--memory cuda or emulated, or --halo fused or direct",
                                 brant::halo_mode_name(options.halo), brant::memory_kind_name(kind)));
}

/// Throws what is impossible, before anything is allocated.
Share make_share(brant::Runtime& runtime, const Options& options, MemoryKind kind) {
  require_mode(options, kind);
  const int each = options.chares_per_process;
  Share share;
  share.cut = decompose(options.size, runtime.size() * each);
  share.first = runtime.rank().value * each;
  const Extent block = extent_of(share.cut.block(0));  // no other is larger
  const double needed = 2.0 * sizeof(double) * static_cast<double>(make_layout(block).doubles) * each;
  require_memory(runtime, kind, needed, to_text(options.size) + " cells");
  if (options.check)
    require_checkable(options.size, options.computes ? options.plan.warmup + options.plan.iterations : 0);
  for (int number = share.first; number < share.first + each; ++number) {
    const Faces faces = options.model == Model::halo ? Faces::in_place : Faces::gathered;
    share.blocks.push_back(std::make_unique<Block>(runtime, share.cut, number, kind, faces));
    share.stencils.push_back(make_stencil(runtime, *share.blocks.back()));
  }
  return share;
}

/// Bytes per second, read plus written, of copying a block's field.
double copy_bandwidth(Block& block) {
  block.copy_over_next();  // the pages are there afterwards
  const Clock::time_point begin = Clock::now();
  for (int copy = 0; copy < kCopies; ++copy) block.copy_over_next();
  const std::chrono::duration<double> spent = Clock::now() - begin;
  return 2.0 * kCopies * sizeof(double) * static_cast<double>(block.layout().doubles) / spent.count();
}

std::vector<Solution> solve(brant::Runtime& runtime, brant::Team& team, Share& share, const Options& options,
                            brant::Path path) {
  switch (options.model) {
    case Model::channel: return solve_with_channels(runtime, team, share, options.plan, path);
    case Model::message: return solve_with_chares(runtime, share, options.plan);
    case Model::halo: break;
  }
  if (options.computes) return solve_with_halo(runtime, team, share, options.plan, options.halo, path);
  return exchange_halo(runtime, share, options.plan, options.halo, path);
}

void come_together(brant::Team& team) { team.run(brant::barrier()).or_throw("the processes did not come together"); }

/// Solves from the start values. The figures are of all processes on rank 0, elsewhere of this one.
Report measure(brant::Runtime& runtime, brant::Team& team, Share& share, const Options& options, brant::Path path) {
  Figures mine;
  come_together(team);  // all copy at the same time, as all sweep at the same time
  mine.copy_bandwidth = copy_bandwidth(*share.blocks[0]);
  for (const auto& stencil : share.stencils) stencil->fill();
  const brant::PathUse before = runtime.path_use();
  std::vector<Solution> solutions = solve(runtime, team, share, options, path);
  const brant::PathUse after = runtime.path_use();
  for (std::size_t i = 0; i < mine.path_bytes.size(); ++i) {
    mine.path_bytes[i] = static_cast<double>(after.bytes[i] - before.bytes[i]);
  }
  const double times = static_cast<double>(options.plan.iterations) * share.cut.processes();
  for (const Solution& solution : solutions) {
    mine.join({solution.iteration / times, solution.compute / times, solution.communication / times});
  }
  for (const Solution& solution : solutions) mine.halo_bytes += solution.sent_bytes;
  Report run{options, share.cut.blocks,      share.blocks[0]->kind(),
             {},      solutions[0].residual, std::move(solutions[0].samples)};
  for (const Figures& figures : gathered(team, mine)) run.figures.join(figures);
  return run;
}

void say(const brant::Team& team, const std::string& text) {
  if (team.rank() != 0) return;
  fmt::print("{}", text);
  std::fflush(stdout);
}

/// Of the field; and of the ghosts, where they alone change.
void check(const Share& share, brant::Team& team, const Options& options, const Report& run) {
  const std::int64_t iterations = options.computes ? options.plan.warmup + options.plan.iterations : 0;
  check_field(share, team, iterations, run.residual);
  if (!options.computes) check_ghosts(share, team);
  const std::int64_t cells = volume(share.cut.global);
  const std::string path = run.figures.path();
  say(team,
      options.computes
          ? fmt::format("check of path {}: all {} cells agree with a serial run to the last bit after {} iterations\n",
                        path, cells, iterations)
          : fmt::format("check of path {}: all ghosts are the cells that they stand for\n", path));
}

void append_rows(const std::string& name, const std::vector<Report>& runs, const Report* staged,
                 brant::Runtime& runtime) {
  std::vector<std::string> lines;
  lines.reserve(runs.size());
  for (const Report& run : runs) lines.push_back(json_row(run, staged, runtime));
  apps::append_lines(name, lines);
}

}  // namespace

void run_job(brant::Runtime& runtime, brant::Team& team, const Options& options) {
  const MemoryKind kind = options.memory.value_or(runtime.device_kind());
  Share share = make_share(runtime, options, kind);
  say(team,
      fmt::format("Jacobi3D: {} cells in {} blocks, {} memory, {} {} after {} to warm up{}{}\n",
                  to_text(share.cut.global), to_text(share.cut.blocks), brant::memory_kind_name(kind),
                  options.plan.iterations, options.computes ? "iterations" : "exchanges", options.plan.warmup,
                  options.model == Model::halo ? fmt::format(", halo {}", brant::halo_mode_name(options.halo)) : "",
                  options.plan.overlap ? ", overlapped" : ""));
  std::vector<Report> runs;
  const bool twice = options.compare && options.path != brant::Path::staged;
  for (const brant::Path path : {options.path, brant::Path::staged}) {
    if (!runs.empty() && !twice) break;
    runs.push_back(measure(runtime, team, share, options, path));
    if (options.check) {
      check(share, team, options, runs.back());
    }
    if (runs.size() == 1 && !options.output.empty()) write_field(share, team, options.output);
  }
  const Report* staged = options.compare ? &runs.back() : nullptr;
  say(team, table(runs, staged));
  if (team.rank() == 0 && !options.json.empty()) append_rows(options.json, runs, staged, runtime);
  come_together(team);  // rank 0 may have checked for long
}

}  // namespace jacobi
