#include "job.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>

#include <fmt/format.h>

#include "brant/device.h"
#include "field.h"
#include "models.h"
#include "report.h"

namespace jacobi {
namespace {

using brant::MemoryKind;
using Clock = std::chrono::steady_clock;

constexpr int kCopies = 5;

/// Bytes this process may allocate of a kind; host memory is shared by the processes of the host.
double memory_of(brant::Runtime& runtime, MemoryKind kind) {
  if (!brant::host_accessible(kind)) return static_cast<double>(runtime.device().info().memory_bytes);
  const double host = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  return host / runtime.local_size();
}

/// The cut of the grid that the options ask for. Throws what is impossible.
Decomposition cut_for(const Options& options, brant::Runtime& runtime, MemoryKind kind) {
  Extent global = options.size.value_or(Extent{256, 256, 256});
  if (options.size_per_process) global = decompose_per_process(*options.size_per_process, runtime.size()).global;
  const Decomposition cut = options.size_per_process && options.chares_per_process == 1
                                ? decompose_per_process(*options.size_per_process, runtime.size())
                                : decompose(global, runtime.size() * options.chares_per_process);
  const Extent block = extent_of(cut.block(0));  // no other is larger
  const double needed =
      2.0 * sizeof(double) * static_cast<double>(make_layout(block).doubles) * options.chares_per_process;
  const double available = memory_of(runtime, kind);
  if (available > 0 && needed > available) {
    throw brant::Error(brant::Status::no_memory,
                       fmt::format("{} cells on {} processes need {:.1f} GB of {} memory per process (two fields in "
                                   "blocks of {} cells), and there are {:.1f}: use a smaller --size or more processes",
                                   to_text(global), runtime.size(), needed / 1e9, brant::memory_kind_name(kind),
                                   to_text(block), available / 1e9));
  }
  if (options.check) SerialRun::require_feasible(global, options.plan.warmup + options.plan.iterations);
  return cut;
}

Share make_share(brant::Runtime& runtime, const Options& options, MemoryKind kind) {
  Share share;
  share.cut = cut_for(options, runtime, kind);
  share.first = runtime.rank().value * options.chares_per_process;
  for (int number = share.first; number < share.first + options.chares_per_process; ++number) {
    share.blocks.push_back(std::make_unique<Block>(runtime, share.cut, number, kind));
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

/// What a process tells of its part in a run.
struct Part {
  double iteration = 0.0, compute = 0.0, communication = 0.0, residual = 0.0, halo_bytes = 0.0, copy_bandwidth = 0.0;
  PathBytes path_bytes{};
};

std::vector<Solution> solve_all(brant::Runtime& runtime, Share& share, const Options& options, brant::Path path) {
  if (options.messages) return solve_with_chares(runtime, share, options.plan, path, Faces::as_arguments);
  if (share.blocks.size() > 1) return solve_with_chares(runtime, share, options.plan, path, Faces::by_channel);
  return solve_with_channels(runtime, share, options.plan, path);
}

/// Solves from the start values. The report is whole on rank 0 only.
Report measure(brant::Runtime& runtime, Team& team, Share& share, const Options& options, brant::Path path) {
  Part mine;
  team.barrier();  // all copy at the same time, as all sweep at the same time
  mine.copy_bandwidth = copy_bandwidth(*share.blocks[0]);
  for (const auto& stencil : share.stencils) stencil->fill();
  const brant::PathUse before = runtime.path_use();
  std::vector<Solution> solutions = solve_all(runtime, share, options, path);
  const brant::PathUse after = runtime.path_use();
  for (std::size_t i = 0; i < mine.path_bytes.size(); ++i) {
    mine.path_bytes[i] = static_cast<double>(after.bytes[i] - before.bytes[i]);
  }
  for (const Solution& solution : solutions) {
    mine.iteration += solution.iteration;
    mine.compute += solution.compute;
    mine.communication += solution.communication;
    if (!(solution.residual <= mine.residual)) mine.residual = solution.residual;  // keeps NaN
  }
  for (const auto& block : share.blocks) {
    for (int side = 0; side < kSides; ++side) {
      if (block->has_neighbour(side)) mine.halo_bytes += static_cast<double>(block->message_out(side).bytes);
    }
  }
  Report report{options, share.cut, share.blocks[0]->kind(), {}, 0.0, 0.0, {}};
  report.mean.samples = std::move(solutions[0].samples);
  const double times = static_cast<double>(options.plan.iterations) * share.cut.processes();
  for (const Part& part : team.gather(mine)) {
    report.mean.iteration += part.iteration / times;
    report.mean.compute += part.compute / times;
    report.mean.communication += part.communication / times;
    if (!(part.residual <= report.mean.residual)) report.mean.residual = part.residual;
    report.halo_bytes = std::max(report.halo_bytes, part.halo_bytes);
    report.copy_bandwidth += part.copy_bandwidth / team.size();
    for (std::size_t i = 0; i < part.path_bytes.size(); ++i) report.path_bytes[i] += part.path_bytes[i];
  }
  return report;
}

void say(const Team& team, const std::string& text) {
  if (!team.leads()) return;
  fmt::print("{}", text);
  std::fflush(stdout);
}

void append_rows(const std::string& name, const std::vector<Report>& runs, const Report* staged,
                 brant::Runtime& runtime) {
  std::ofstream file(name, std::ios::app);
  for (const Report& run : runs) file << json_row(run, staged, runtime) + '\n';
  if (!file.flush()) throw brant::Error(brant::Status::io_error, fmt::format("--json {}: could not write it", name));
}

}  // namespace

void run_job(brant::Runtime& runtime, Team& team, const Options& options) {
  const MemoryKind kind = options.memory.value_or(runtime.device_kind());
  Share share = make_share(runtime, options, kind);
  const std::int64_t iterations = options.plan.warmup + options.plan.iterations;
  say(team, fmt::format("Jacobi3D: {} cells in {} blocks, {} memory of {}, {} iterations after {} to warm up{}\n",
                        to_text(share.cut.global), to_text(share.cut.blocks), brant::memory_kind_name(kind),
                        runtime.device().info().name, options.plan.iterations, options.plan.warmup,
                        options.plan.overlap ? ", overlapped" : ""));
  std::vector<Report> runs;
  const bool twice = options.compare && options.path != brant::Path::staged;
  for (const brant::Path path : {options.path, brant::Path::staged}) {
    if (!runs.empty() && !twice) break;
    runs.push_back(measure(runtime, team, share, options, path));
    if (options.check) {
      check_field(share, team, iterations, runs.back().mean.residual);
      say(team,
          fmt::format("check of path {}: all {} cells agree with a serial run to the last bit after {} iterations\n",
                      runs.back().path(), volume(share.cut.global), iterations));
    }
    if (runs.size() == 1 && !options.output.empty()) write_field(share, team, options.output);
  }
  const Report* staged = options.compare ? &runs.back() : nullptr;
  say(team, table(runs, staged));
  say(team, fmt::format("largest change of a cell in the last iteration: {:.6g}\n", runs.front().mean.residual));
  if (team.leads() && !options.json.empty()) append_rows(options.json, runs, staged, runtime);
  team.barrier();  // rank 0 may have checked for long
}

void run_demo(brant::Runtime& runtime, Team& team, const Options& options) {
  Options small;
  small.path = options.path;
  small.memory = options.memory;
  small.size = Extent{70, 52, 46};
  small.plan = {.iterations = 20, .warmup = 0, .overlap = true};
  small.check = true;
  run_job(runtime, team, small);
  say(team, "\n");
  Options large = options;
  const MemoryKind kind = options.memory.value_or(runtime.device_kind());
  std::int64_t size = kind == MemoryKind::cuda ? 1536 : 192;  // some seconds of work
  while (size > 256 &&
         2.2 * sizeof(double) * static_cast<double>(size * size * size) > 0.8 * memory_of(runtime, kind)) {
    size /= 2;
  }
  if (!large.size && !large.size_per_process) large.size_per_process = Extent{size, size, size};
  large.plan.iterations = std::min<std::int64_t>(options.plan.iterations, 50);
  large.compare = !options.messages;
  run_job(runtime, team, large);
}

}  // namespace jacobi
