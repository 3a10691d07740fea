#include "job.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "brant/device.h"
#include "field_file.h"
#include "progress_bar.h"
#include "serial.h"

namespace jacobi {
namespace {

using brant::MemoryKind;
using brant::Status;

constexpr std::int64_t kDefaultSize = 256;

/// Bytes this process may allocate of a kind; host memory is shared by the processes of the host.
double memory_of(brant::Runtime& runtime, MemoryKind kind) {
  if (!brant::host_accessible(kind)) return static_cast<double>(runtime.device().info().memory_bytes);
  const double host = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  return host / runtime.local_size();
}

Decomposition cut(const Options& options, const NpyReader* input, int processes) {
  const int blocks = processes * options.chares_per_process;
  if (options.size_per_process) {
    const Decomposition by_process = decompose_per_process(*options.size_per_process, processes);
    return options.chares_per_process == 1 ? by_process : decompose(by_process.global, blocks);
  }
  if (input != nullptr && options.size && !(*options.size == input->shape())) {
    throw brant::Error(Status::invalid_argument,
                       fmt::format("{} has shape {}, but --size says {}: leave --size out, or give another file",
                                   options.input, to_text(input->shape()), to_text(*options.size)));
  }
  const Extent fallback{kDefaultSize, kDefaultSize, kDefaultSize};
  return decompose(input != nullptr ? input->shape() : options.size.value_or(fallback), blocks);
}

void require_memory(brant::Runtime& runtime, const Decomposition& decomposition, MemoryKind kind) {
  const int each = decomposition.processes() / runtime.size();
  const int first = runtime.rank().value * each;
  double needed = 0.0;
  for (int number = first; number < first + each; ++number) needed += Block::bytes_needed(decomposition, number);
  const double available = memory_of(runtime, kind);
  if (available <= 0 || needed <= available) return;
  throw brant::Error(Status::no_memory, fmt::format("{} cells on {} processes need {:.1f} GB of {} memory per process "
                                                    "(two fields of {} cells), and there are {:.1f}: "
                                                    "use a smaller --size or more processes",
                                                    to_text(decomposition.global), runtime.size(), needed / 1e9,
                                                    brant::memory_kind_name(kind),
                                                    to_text(extent_of(decomposition.block(first))), available / 1e9));
}

/// The cut of the grid that the options ask for. Throws what is impossible.
Decomposition checked_cut(const Options& options, const NpyReader* input, int processes) {
  const Decomposition decomposition = cut(options, input, processes);
  const Extent block = extent_of(decomposition.block(0));  // no other is larger
  if (std::max({block.x, block.y, block.z}) > kAxisMax) {
    throw brant::Error(
        Status::limit_reached,
        fmt::format(
            "a block of {} cells: an axis of a process's block may have {} cells, use more processes or another shape",
            to_text(block), kAxisMax));
  }
  return decomposition;
}

/// Sizes for the demo: some seconds of work.
std::int64_t demo_size(brant::Runtime& runtime, MemoryKind kind) {
  if (kind == MemoryKind::cuda) {
    for (const std::int64_t size : {1536, 1024, 768, 512}) {
      if (2.2 * static_cast<double>(size * size * size) * sizeof(double) < 0.8 * memory_of(runtime, kind)) return size;
    }
  }
  return kind == MemoryKind::cuda ? 256 : 192;
}

}  // namespace

/// Everything of one problem that lives as long as its runs. Members go in reverse order: the stencil before the block
/// it works on.
struct Job::Problem {
  Options options;
  std::unique_ptr<NpyReader> input;
  Decomposition decomposition;
  MemoryKind kind = MemoryKind::host;
  Blocks blocks;
  double copy_bandwidth = 0.0;

  [[nodiscard]] std::int64_t iterations() const noexcept { return options.warmup + options.iterations; }
  void start_over() const {
    for (const auto& stencil : blocks.stencil) stencil->fill();
    for (const auto& block : blocks.block) {
      if (input) load_block(*block, *input);
    }
  }
};

void Job::say(const std::string& text) const {
  if (!star_.is_root()) return;
  fmt::print("{}", text);
  std::fflush(stdout);
}

std::unique_ptr<Job::Problem> Job::prepare(const Options& options) {
  auto problem = std::make_unique<Problem>();
  problem->options = options;
  star_.agree([&] {
    if (!options.input.empty()) problem->input = std::make_unique<NpyReader>(options.input);
    problem->decomposition = checked_cut(options, problem->input.get(), runtime_.size());
    problem->kind = options.memory.value_or(runtime_.device_kind());
    require_memory(runtime_, problem->decomposition, problem->kind);
    if (options.check) SerialRun::require_feasible(problem->decomposition.global, problem->iterations());
  });
  star_.agree([&] {
    const int first = runtime_.rank().value * options.chares_per_process;
    for (int number = first; number < first + options.chares_per_process; ++number) {
      auto& block = problem->blocks.block.emplace_back(
          std::make_unique<Block>(runtime_, problem->decomposition, number, problem->kind));
      problem->blocks.stencil.push_back(make_stencil(runtime_, *block, options.kernel));
    }
    problem->start_over();
  });
  star_.barrier();  // all copy at the same time, as all sweep at the same time
  problem->copy_bandwidth = star_.sum(problem->blocks.stencil[0]->copy_bandwidth()) / star_.size();
  return problem;
}

RunReport Job::measure(Problem& problem, brant::Path path) {
  const Options& options = problem.options;
  problem.start_over();
  const int rank = runtime_.rank().value;
  const brant::PathUse before = runtime_.path_use();
  HaloExchange halo(runtime_, *problem.blocks.block[0], problem.decomposition, rank, path, generation_++);
  ProgressBar bar(problem.iterations(), star_.is_root());
  Solver solver(runtime_, star_, *problem.blocks.block[0], *problem.blocks.stencil[0], halo);
  Solution solution = solver.run({.iterations = options.iterations,
                                  .warmup = options.warmup,
                                  .residual_every = options.residual_every,
                                  .overlap = options.overlap,
                                  .on_iteration = [&](std::int64_t done) { bar.update(done); }});
  return report_of(problem, before, std::move(solution.timing), solution.residual, static_cast<double>(halo.bytes()));
}

/// The same with every block a chare.
RunReport Job::measure_chares(Problem& problem, brant::Path path) {
  const Options& options = problem.options;
  problem.start_over();
  PatchOrder order;
  order.iterations = options.iterations;
  order.warmup = options.warmup;
  order.residual_every = options.residual_every;
  order.overlap = options.overlap;
  order.model = options.model;
  order.path = path;
  const brant::PathUse before = runtime_.path_use();
  PatchRun run = run_patches(runtime_, star_, problem.blocks, problem.decomposition, order);
  double bytes = 0.0;
  const int first = problem.blocks.first(runtime_.rank().value);
  for (std::size_t i = 0; i < problem.blocks.block.size(); ++i) {
    for (int side = 0; side < kSides; ++side) {
      if (!problem.decomposition.neighbour(first + static_cast<int>(i), side)) continue;
      bytes += static_cast<double>(problem.blocks.block[i]->message_out(side).bytes);
    }
  }
  return report_of(problem, before, std::move(run.timing), run.residual, bytes);
}

/// What all processes have sent since then.
PathBytes Job::bytes_since(const brant::PathUse& before) {
  const brant::PathUse now = runtime_.path_use();
  PathBytes bytes{};
  for (std::size_t path = 0; path < bytes.size(); ++path) {
    bytes[path] = static_cast<double>(now.bytes[path] - before.bytes[path]);
  }
  for (double& of_path : bytes) of_path = star_.sum(of_path);
  return bytes;
}

RunReport Job::report_of(const Problem& problem, const brant::PathUse& before, Timing timing, double residual,
                         double halo_bytes) {
  const Options& options = problem.options;
  RunReport report;
  report.path_bytes = bytes_since(before);
  report.path = main_path(report.path_bytes);
  report.memory = problem.kind;
  report.decomposition = problem.decomposition;
  report.overlap = options.overlap;
  report.model = options.model;
  report.chares = options.chares_per_process;
  report.iterations = options.iterations;
  report.timing = std::move(timing);
  report.residual = residual;
  report.halo_bytes = star_.largest(halo_bytes);
  report.copy_bandwidth = problem.copy_bandwidth;
  const double cells = static_cast<double>(volume(problem.decomposition.global)) / star_.size();
  report.sweep_bandwidth = cells * 2 * sizeof(double) / std::max(report.timing.compute, 1e-3) * 1e6;
  return report;
}

void Job::check(Problem& problem, const RunReport& report, const std::string& name) {
  std::unique_ptr<SerialRun> serial;
  star_.agree([&] {
    if (star_.is_root())
      serial = std::make_unique<SerialRun>(problem.decomposition.global, problem.iterations(), problem.input.get());
  });
  gather(problem.blocks, problem.decomposition, star_, [&](const PlaneView& plane) { serial->compare(plane); });
  star_.agree([&] {
    if (!serial) return;
    if (serial->differences() != 0) {
      throw brant::Error(
          Status::internal,
          fmt::format("check of path {} failed: {} of {} cells differ from the serial run; the first, {}", name,
                      serial->differences(), volume(problem.decomposition.global), serial->first_difference()));
    }
    if (!(serial->residual() == report.residual) && !(serial->residual() != serial->residual())) {
      throw brant::Error(Status::internal,
                         fmt::format("check of path {} failed: the residual is {:.17g}, serially {:.17g}", name,
                                     report.residual, serial->residual()));
    }
  });
  say(fmt::format("check of path {}: all {} cells agree with a serial run to the last bit after {} iterations\n", name,
                  volume(problem.decomposition.global), problem.iterations()));
}

void Job::run(const Options& options) {
  const std::unique_ptr<Problem> problem = prepare(options);
  const Machine machine = Machine::of(runtime_);
  const Decomposition& decomposition = problem->decomposition;
  say(fmt::format("Jacobi3D: {} cells in {} blocks, {} memory of {}, {} iterations after {} to warm up{}\n",
                  to_text(decomposition.global), to_text(decomposition.blocks), brant::memory_kind_name(problem->kind),
                  machine.gpu.empty() ? machine.cpu : machine.gpu, options.iterations, options.warmup,
                  options.overlap ? ", overlapped" : ""));
  std::vector<RunReport> runs;
  const bool twice = options.compare && options.path != brant::Path::staged;
  for (const brant::Path path : {options.path, brant::Path::staged}) {
    if (!runs.empty() && !twice) break;
    const bool as_chares = options.model == Model::message || options.chares_per_process > 1;
    runs.push_back(as_chares ? measure_chares(*problem, path) : measure(*problem, path));
    if (options.check) check(*problem, runs.back(), runs.back().path);
    if (runs.size() == 1 && !options.output.empty()) write_field(problem->blocks, decomposition, star_, options.output);
  }
  const RunReport* staged = options.compare ? &runs.back() : nullptr;
  say(table(runs, staged));
  say(fmt::format("largest change of a cell in the last iteration: {:.6g}\n", runs.front().residual));
  star_.agree([&] {
    if (!star_.is_root() || options.json.empty()) return;
    for (const RunReport& run : runs) append_line(options.json, json_row(run, staged, machine));
  });
}

void Job::demo(const Options& options) {
  Options small = options;
  small.size = Extent{70, 52, 46};
  small.size_per_process.reset();
  small.input.clear();
  small.iterations = 20;
  small.warmup = 0;
  small.check = small.overlap = true;
  small.compare = false;
  small.json.clear();
  small.output.clear();
  run(small);
  say("\n");
  Options large = options;
  const std::int64_t size = demo_size(runtime_, options.memory.value_or(runtime_.device_kind()));
  if (!large.size && large.input.empty() && !large.size_per_process) large.size_per_process = Extent{size, size, size};
  large.iterations = std::min<std::int64_t>(options.iterations, 50);
  large.compare = true;
  run(large);
}

}  // namespace jacobi
