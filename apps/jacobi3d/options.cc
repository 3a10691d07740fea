#include "options.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "brant/device.h"
#include "decomposition.h"

namespace jacobi {
namespace {

using brant::MemoryKind;

const CLI::Range kIterations(std::int64_t{0}, std::int64_t{1'000'000'000'000});

/// One number is a cube.
std::optional<Extent> extent_from(const std::vector<std::int64_t>& numbers, const char* option) {
  if (numbers.empty()) return std::nullopt;
  if (numbers.size() == 2) throw CLI::ValidationError(option, "give one number for a cube, or three: NX NY NZ");
  const Extent extent =
      numbers.size() == 1 ? Extent{numbers[0], numbers[0], numbers[0]} : Extent{numbers[0], numbers[1], numbers[2]};
  for (const std::int64_t cells : {extent.x, extent.y, extent.z}) {
    if (cells < 1 || cells > kAxisMax) {
      throw CLI::ValidationError(option, fmt::format("{} cells: every axis needs 1 to {}", to_text(extent), kAxisMax));
    }
  }
  return extent;
}

/// What CLI11 fills and we still have to understand.
struct Raw {
  std::vector<std::int64_t> size, size_per_process;
  std::string path = "auto", memory = "auto", model = "channel";
};

void declare(CLI::App& app, Options& options, Raw& raw) {
  auto* size = app.add_option("--size", raw.size, "Global size in cells: N for a cube, or NX NY NZ (default 256)");
  size->expected(1, 3);
  app.add_option("--size-per-process", raw.size_per_process, "Size of every process's block instead")
      ->expected(1, 3)
      ->excludes(size);
  app.add_option("--iterations", options.plan.iterations, "Iterations that are timed")
      ->check(kIterations & CLI::PositiveNumber);
  app.add_option("--warmup", options.plan.warmup, "Iterations before them")->check(kIterations);
  app.add_option("--memory", raw.memory, "Where the field lives (auto: the GPU if there is one, else host)")
      ->check(CLI::IsMember({"auto", "host", "pinned", "cuda", "emulated"}));
  app.add_option("--path", raw.path, "How faces travel")->check(CLI::IsMember(brant::requestable_paths()));
  app.add_option("--model", raw.model, "Faces over channels, or as arguments of messages between chares")
      ->check(CLI::IsMember({"channel", "message"}));
  app.add_option("--chares-per-process", options.chares_per_process,
                 "Cut every process's share into so many blocks, each a chare")
      ->check(CLI::Range(1, 4096));
  app.add_flag("--overlap", options.plan.overlap, "Compute the interior while the faces travel");
  app.add_flag("--compare", options.compare, "Run again with the path 'staged' and print the speed-up");
  app.add_flag("--check", options.check, "Compare every bit of the result with a serial run on rank 0");
  app.add_option("--output", options.output, "Where the final field goes, as .npy");
  app.add_option("--json", options.json, "Append one row per run to this file");
  app.add_flag("--demo", options.demo, "A check, then a comparison with 'staged', at sizes that fit this machine");
}

/// Whether every process of this host has a GPU of its own. Asks the driver.
bool enough_gpus() {
  const char* processes = std::getenv("BRANT_LOCAL_SIZE");
  return brant::list_gpus().size() >= static_cast<std::size_t>(processes == nullptr ? 1 : std::atoi(processes));
}

void take(Options& options, const Raw& raw) {
  options.size = extent_from(raw.size, "--size");
  options.size_per_process = extent_from(raw.size_per_process, "--size-per-process");
  options.messages = raw.model == "message";
  static_cast<void>(brant::path_from_name(raw.path, options.path));
  MemoryKind kind = MemoryKind::detect;
  if (brant::memory_kind_from_name(raw.memory, kind)) options.memory = kind;
  if (options.path == brant::Path::shm && options.memory && !brant::host_accessible(kind)) {
    throw CLI::ValidationError("--path",
                               fmt::format("shm is a path between host memories, not for --memory {}", raw.memory));
  }
  if (options.messages && options.compare) {
    throw CLI::ValidationError("--compare",
                               "messages of one run take one path: compare two runs, one with --path staged");
  }
  if (options.demo && !options.memory && !enough_gpus()) options.memory = MemoryKind::host;
}

}  // namespace

bool is_first_process() {
  for (const char* name : {"BRANT_RANK", "PMIX_RANK"}) {
    if (const char* rank = std::getenv(name)) return std::string_view(rank) == "0";
  }
  return true;
}

std::optional<Options> parse_options(int argc, char** argv, int& exit_code) {
  CLI::App app(
      "Seven-point Jacobi iteration on a 3-D grid of doubles, cut into one block per process.\n"
      "Start it as: brant run -n 2 -- jacobi3d --size 512 --check --compare",
      "jacobi3d");
  Options options;
  Raw raw;
  declare(app, options, raw);
  try {
    app.parse(argc, argv);
    take(options, raw);
    return options;
  } catch (const CLI::Success& asked) {
    exit_code = is_first_process() ? app.exit(asked) : 0;
  } catch (const CLI::ParseError& error) {
    exit_code = 2;
    if (is_first_process()) fmt::print(stderr, "error: {}. See jacobi3d --help\n", error.what());
  }
  return std::nullopt;
}

brant::RuntimeOptions runtime_options(const Options& options) {
  brant::RuntimeOptions runtime = brant::RuntimeOptions::from_environment();
  if (options.memory == MemoryKind::host) runtime.gpu = brant::GpuChoice::none;
  if (options.memory == MemoryKind::cuda) runtime.gpu = brant::GpuChoice::cuda;
  if (options.memory == MemoryKind::emulated) runtime.gpu = brant::GpuChoice::emulated;
  if (options.messages) runtime.path = options.path;  // arguments travel in channels of the runtime's own
  return runtime;
}

}  // namespace jacobi
