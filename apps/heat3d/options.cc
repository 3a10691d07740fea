#include "options.h"

#include <algorithm>
#include <string_view>

#include <CLI/CLI.hpp>

#include "devices.h"
#include "program.h"

namespace heat {
namespace {

using brant::MemoryKind;

constexpr std::int64_t kAxisMax = 100'000;
constexpr std::int64_t kStepsMax = 10'000'000;

/// What CLI11 fills and we still have to understand.
struct Raw {
  std::int64_t size = 64;
  std::vector<std::int64_t> cells;
  std::string mode = "one-sided", memory = "auto";
};

void declare(CLI::App& app, Options& options, Raw& raw) {
  auto* size = app.add_option("--size", raw.size, "Cells along each side of a cube (the paper: 200)");
  size->check(CLI::Range(std::int64_t{1}, kAxisMax));
  app.add_option("--cells", raw.cells, "Another box: X,Y,Z")
      ->delimiter(',')
      ->expected(3)
      ->excludes(size)
      ->check(CLI::Range(std::int64_t{1}, kAxisMax));
  app.add_option("--steps", options.steps, "How many (the paper: 10000)")
      ->check(CLI::Range(std::int64_t{2}, kStepsMax))
      ->capture_default_str();
  app.add_option("--warmup", options.warmup, "Of them, those at the start that no figure counts (10, or what leaves 2)")
      ->check(CLI::Range(std::int64_t{0}, kStepsMax));
  app.add_option("--print", options.print, "Print the average temperature every so many steps; 0: at the end alone")
      ->check(CLI::Range(std::int64_t{0}, kStepsMax))
      ->capture_default_str();
  app.add_option("--reduce-every", options.reduce,
                 "Add it up every so many steps too. With 1 the time of a step includes it, as in the paper")
      ->check(CLI::Range(std::int64_t{1}, kStepsMax));
  app.add_option("--mode", raw.mode, "Faces by put with a word behind them, by messages over channels, or one run each")
      ->check(CLI::IsMember({"one-sided", "two-sided", "both"}))
      ->capture_default_str();
  app.add_option("--memory", raw.memory, "Where the body lives (auto: the GPU if there is one, else host)")
      ->check(CLI::IsMember({"auto", "host", "device", "cuda", "emulated"}));
  app.add_flag("--check", options.check,
               "Begin with noise, and compare every bit of the result with a serial run on rank 0");
  app.add_flag("--histogram", options.histogram, "Show the latency of a step over two steps, in bars");
  app.add_option("--json", options.json, "Append one row per run to this file");
}

void take(const CLI::App& app, Options& options, const Raw& raw) {
  options.size = {raw.size, raw.size, raw.size};
  if (!raw.cells.empty()) options.size = {raw.cells[0], raw.cells[1], raw.cells[2]};
  if (app.count("--warmup") == 0) options.warmup = std::min(options.warmup, options.steps - 2);
  if (options.warmup + 2 > options.steps) {
    throw CLI::ValidationError("--warmup", "a window has two steps: leave that many of --steps to be timed");
  }
  options.modes.clear();
  if (raw.mode != "two-sided") options.modes.push_back(Mode::one_sided);
  if (raw.mode != "one-sided") options.modes.push_back(Mode::two_sided);
  MemoryKind kind = MemoryKind::detect;
  if (brant::memory_kind_from_name(raw.memory, kind)) options.memory = kind;
  options.needs_device = raw.memory == "device";
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_code) {
  CLI::App app(
      "Heat conduction in a box that radiates, cut into one block per process.\n"
      "Start it as: brant run -n 2 -- heat3d --mode both --check --histogram",
      "heat3d");
  Options options;
  Raw raw;
  declare(app, options, raw);
  const std::optional<int> ended = apps::parse(app, argc, argv, [&] { take(app, options, raw); });
  if (!ended) return options;
  exit_code = *ended;
  return std::nullopt;
}

brant::RuntimeOptions runtime_options(const Options& options) {
  brant::RuntimeOptions runtime = apps::runtime_options_for(options.memory);
  // Steps are too short to sleep in, and kernels that end wake nobody: who sleeps would see it late.
  runtime.sleep = false;
  return runtime;
}

}  // namespace heat
