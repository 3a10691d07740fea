#include "options.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "decomposition.h"

namespace jacobi {
namespace {

constexpr std::int64_t kIterationsMax = 1'000'000'000'000;

using brant::MemoryKind;
using brant::Path;

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

/// GPUs this process could use, counted without touching them. Only --demo asks: it must know before a device is
/// opened.
int visible_gpus() {
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr && *visible == '\0') return 0;
  int count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_gpu =
        name.starts_with("nvidia") && name.size() > 6 && name.find_first_not_of("0123456789", 6) == std::string::npos;
    count += is_gpu ? 1 : 0;
  }
  return count;
}

int processes_on_this_host() {
  const char* text = std::getenv("BRANT_LOCAL_SIZE");
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

/// The options as CLI11 fills them, before they are checked.
struct Raw {
  std::vector<std::int64_t> size;
  std::vector<std::int64_t> size_per_process;
  std::string path = "auto";
  std::string memory = "auto";
  std::string kernel = "pairs";
  std::string model = "channel";
};

void declare_problem(CLI::App& app, Options& options, Raw& raw) {
  auto* size = app.add_option("--size", raw.size,
                              "Global size in cells: N for a cube, or NX NY NZ (default 256, or that of --input)")
                   ->expected(1, 3);
  app.add_option("--size-per-process", raw.size_per_process, "Size of every process's block instead")
      ->expected(1, 3)
      ->excludes(size);
  app.add_option("--iterations", options.iterations, "Iterations that are timed")
      ->check(CLI::Range(std::int64_t{1}, kIterationsMax));
  app.add_option("--warmup", options.warmup, "Iterations before them")
      ->check(CLI::Range(std::int64_t{0}, kIterationsMax));
  app.add_option("--residual-every", options.residual_every,
                 "Compute the largest change every K iterations (0: at the end only)")
      ->check(CLI::Range(std::int64_t{0}, kIterationsMax));
  app.add_option("--input", options.input, "Initial field: a .npy file with a float64 array of shape (NX, NY, NZ)");
  app.add_option("--output", options.output, "Where the final field goes, as .npy");
}

void declare_way(CLI::App& app, Options& options, Raw& raw) {
  app.add_option("--memory", raw.memory, "Where the field lives (auto: the GPU if there is one, else host)")
      ->check(CLI::IsMember({"auto", "host", "pinned", "cuda", "emulated"}));
  app.add_option("--path", raw.path, "How faces travel")->check(CLI::IsMember(brant::requestable_paths()));
  app.add_option("--model", raw.model,
                 "What the program is written in: channels between blocks, or messages between chares")
      ->check(CLI::IsMember({"channel", "message"}));
  app.add_option("--chares-per-process", options.chares_per_process,
                 "Cut every process's share into so many blocks, each a chare")
      ->check(CLI::Range(1, 4096));
  app.add_flag("--overlap", options.overlap, "Compute the interior while the faces travel");
  app.add_flag("--compare", options.compare, "Run again with the path 'staged' and print the speed-up");
  app.add_flag("--check", options.check, "Compare every bit of the result with a serial run on rank 0");
  app.add_option("--json", options.json, "Append one row per run to this file");
  app.add_flag("--demo", options.demo, "A check, then a comparison with 'staged', at sizes that fit this machine");
  app.add_option("--kernel", raw.kernel)->check(CLI::IsMember({"pairs", "plain"}))->group("");  // hidden: for measuring
}

void take(Options& options, const Raw& raw) {
  options.size = extent_from(raw.size, "--size");
  options.size_per_process = extent_from(raw.size_per_process, "--size-per-process");
  if (options.size_per_process && !options.input.empty()) {
    throw CLI::ValidationError("--input", "the file says the global size: leave --size-per-process out");
  }
  const bool known = brant::path_from_name(raw.path, options.path);
  if (!known) throw CLI::ValidationError("--path", "unknown");
  MemoryKind kind = MemoryKind::detect;
  if (raw.memory != "auto" && brant::memory_kind_from_name(raw.memory, kind)) options.memory = kind;
  if (options.path == Path::shm && kind != MemoryKind::detect && !brant::host_accessible(kind)) {
    throw CLI::ValidationError("--path",
                               fmt::format("shm is a path between host memories, not for --memory {}", raw.memory));
  }
  options.model = raw.model == "message" ? Model::message : Model::channel;
  if (options.model == Model::message && options.compare) {
    throw CLI::ValidationError("--compare",
                               "messages of one run take one path: compare two runs, one with --path staged");
  }
  options.kernel = raw.kernel == "plain" ? SweepKernel::plain : SweepKernel::pairs;
  if (options.demo && !options.memory && visible_gpus() < processes_on_this_host()) options.memory = MemoryKind::host;
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
  declare_problem(app, options, raw);
  declare_way(app, options, raw);
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
  if (options.model == Model::message) runtime.path = options.path;  // the faces' channels are the runtime's own
  return runtime;
}

}  // namespace jacobi
