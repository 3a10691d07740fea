#include "options.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "decomposition.h"
#include "devices.h"
#include "models.h"
#include "program.h"

namespace jacobi {
namespace {

using brant::MemoryKind;

/// Cells that one axis may have: keeps every kernel's grid within bounds, and products within 64 bits.
constexpr std::int64_t kAxisMax = 500'000;
constexpr std::int64_t kIterationsMax = 1'000'000'000'000;

/// What CLI11 fills and we still have to understand.
struct Raw {
  std::vector<std::int64_t> size{256};
  std::string path = "auto", memory = "auto", model, halo, compute = "sweep";
};

std::vector<std::string> halo_modes() {
  std::vector<std::string> names;
  for (const brant::NamedHaloMode& known : brant::kHaloModes) names.emplace_back(known.name);
  return names;
}

void declare(CLI::App& app, Options& options, Raw& raw) {
  app.add_option("--size", raw.size, "Size of the grid in cells: N for a cube, or NX NY NZ")
      ->expected(1, 3)
      ->check(CLI::Range(std::int64_t{1}, kAxisMax));
  app.add_option("--iterations", options.plan.iterations, "Iterations that are timed")
      ->check(CLI::Range(std::int64_t{1}, kIterationsMax));
  app.add_option("--warmup", options.plan.warmup, "Iterations before them")
      ->check(CLI::Range(std::int64_t{0}, kIterationsMax));
  app.add_option("--memory", raw.memory, "Where the field lives (auto: the GPU if there is one, else host)")
      ->check(CLI::IsMember({"auto", "host", "pinned", "cuda", "emulated"}));
  app.add_option("--path", raw.path, "How faces travel")->check(CLI::IsMember(brant::requestable_paths()));
  app.add_option("--model", raw.model,
                 "Faces over channels (the default), as arguments of messages between chares, or by a halo exchange")
      ->check(CLI::IsMember({"channel", "message", "halo"}));
  app.add_option("--halo", raw.halo, "Model halo, in this mode (without it: fused)")
      ->check(CLI::IsMember(halo_modes()));
  app.add_option("--compute", raw.compute, "none: exchange ghosts and compute nothing, with model halo")
      ->check(CLI::IsMember({"sweep", "none"}));
  app.add_option("--chares-per-process", options.chares_per_process,
                 "Cut every process's share into so many blocks, each a chare")
      ->check(CLI::Range(1, 4096));
  app.add_flag("--overlap", options.plan.overlap, "Compute the interior while the faces travel");
  app.add_option("--residual", options.plan.residual_every,
                 "Find the largest change of a cell in every N-th iteration, on all processes")
      ->check(CLI::Range(std::int64_t{1}, kIterationsMax));
  app.add_flag("--compare", options.compare, "Run again with the path 'staged' and print the speed-up");
  app.add_flag("--check", options.check, "Compare every bit of the result with a serial run on rank 0");
  app.add_option("--output", options.output, "Where the final field goes, as .npy");
  app.add_option("--json", options.json, "Append one row per run to this file");
}

void take(Options& options, const Raw& raw) {
  const std::vector<std::int64_t>& size = raw.size;
  if (size.size() == 2) throw CLI::ValidationError("--size", "give one number for a cube, or three: NX NY NZ");
  options.size = size.size() == 1 ? Extent{size[0], size[0], size[0]} : Extent{size[0], size[1], size[2]};
  const bool halo = raw.model == "halo" || (raw.model.empty() && !raw.halo.empty());
  options.model = halo ? Model::halo : raw.model == "message" ? Model::message : Model::channel;
  for (const auto& [mode, name] : brant::kHaloModes) {
    if (raw.halo == name) options.halo = mode;
  }
  options.computes = raw.compute == "sweep";
  static_cast<void>(brant::path_from_name(raw.path, options.path));
  MemoryKind kind = MemoryKind::detect;
  if (brant::memory_kind_from_name(raw.memory, kind)) options.memory = kind;
  const auto refuse = [](bool wrong, const char* option, const char* why) {
    if (wrong) throw CLI::ValidationError(option, why);
  };
  refuse(options.path == brant::Path::shm && options.memory && !brant::host_accessible(kind), "--path",
         "shm is a path between host memories");
  refuse(options.model == Model::message && options.compare, "--compare",
         "messages of one run take one path: compare two runs, one with --path staged");
  refuse(options.chares_per_process > 1 && options.model != Model::message, "--chares-per-process",
         "only chares can be several in a process: --model message");
  refuse(!raw.halo.empty() && !halo, "--halo", "a mode of --model halo, and of no other");
  refuse(!options.computes && !halo, "--compute", "only exchanges can go without the rest: --halo MODE");
  refuse(!options.computes && (options.compare || options.plan.overlap || !options.output.empty()), "--compute",
         "where nothing is computed there is nothing to --compare, --overlap or --output");
  refuse(!options.computes && options.plan.residual_every != 0, "--residual",
         "where nothing is computed nothing changes");
  refuse(halo && is_bound(options.halo) && (options.compare || options.path != brant::Path::automatic), "--halo",
         "the modes direct, graph and resident send no messages, which a --path or --compare would be for");
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_code) {
  CLI::App app(
      "Seven-point Jacobi iteration on a 3-D grid of doubles, cut into one block per process.\n"
      "Start it as: brant run -n 2 -- jacobi3d --size 512 --check --compare",
      "jacobi3d");
  Options options;
  Raw raw;
  declare(app, options, raw);
  const std::optional<int> ended = parse(app, argc, argv, [&] { take(options, raw); });
  if (!ended) return options;
  exit_code = *ended;
  return std::nullopt;
}

brant::RuntimeOptions runtime_options(const Options& options) {
  brant::RuntimeOptions runtime = apps::runtime_options_for(options.memory);
  if (options.model == Model::message)
    runtime.path = options.path;  // arguments travel in channels of the runtime's own
  return runtime;
}

}  // namespace jacobi
