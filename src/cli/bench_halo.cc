#include "cli/bench_halo.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/halo/halo.h"
#include "bench/runner/row.h"
#include "bench/runner/self_start.h"
#include "cli/bench_run.h"
#include "core/paths/calibration_store.h"

namespace brant::cli {
namespace {

struct HaloArguments {
  bench::HaloBench bench;
  std::vector<std::int64_t> size{100, 100, 100};
  std::vector<int> divide{0, 0, 0};
  std::vector<int> periodic{1, 1, 1};
  std::vector<std::int64_t> ghost{1, 1, 1};
  std::string memory = "host";
  std::vector<std::string> modes{"fused"};
  std::string messages = "process";
  bool model = false;
  std::string parameters;
};

/// "all" stands for each of them.
std::vector<HaloMode> modes_of(const std::vector<std::string>& names) {
  std::vector<HaloMode> modes;
  for (const auto& [mode, known] : kHaloModes) {
    for (const std::string& name : names) {
      if (name == "all" || name == known) {
        modes.push_back(mode);
        break;
      }
    }
  }
  return modes;
}

/// What `brant calibrate --model` kept. Throws Error, with the cure.
bench::model::Parameters read_parameters(const std::string& named) {
  const std::string file = named.empty() ? model_file() : named;
  if (file.empty())
    throw Error(Status::invalid_argument, "--model: there is no cache folder to look into; give --parameters FILE");
  const std::optional<std::string> text = read_small_file(file);
  if (!text) {
    throw Error(Status::invalid_argument,
                fmt::format("--model: {} does not exist: run `brant calibrate --model{}` first", file,
                            named.empty() ? "" : " --output " + file));
  }
  return bench::model::parse_parameters(*text, file);
}

template <typename All>
std::vector<std::string> names_of(const All& all) {
  std::vector<std::string> names;
  for (const auto& named : all) names.emplace_back(named.name);
  return names;
}

int run_halo(const HaloArguments& arguments) {
  return run_benchmark("brant bench", [&] {
    bench::HaloBench asked = arguments.bench;
    std::copy_n(arguments.size.begin(), 3, asked.halo.grid.begin());
    std::copy_n(arguments.divide.begin(), 3, asked.halo.divide.begin());
    std::copy_n(arguments.ghost.begin(), 3, asked.halo.ghost.begin());
    for (std::size_t d = 0; d < 3; ++d) asked.halo.periodic[d] = arguments.periodic[d] != 0;
    static_cast<void>(memory_kind_from_name(arguments.memory, asked.memory));  // CLI11 has checked it
    asked.modes = modes_of(arguments.modes);
    for (const auto& [messages, name] : bench::kHaloMessages) {
      if (arguments.messages == name) asked.halo.messages = messages;
    }
    if (arguments.model || !arguments.parameters.empty()) asked.parameters = read_parameters(arguments.parameters);
    const bench::RowFile probe(asked.json);  // a file that cannot be written is found before anything starts
    if (bench::started_alone()) bench::restart_as_job(2);
    bench::run_halo(asked);
  });
}

}  // namespace

void add_bench_halo(CLI::App& bench, int& exit_code) {
  auto arguments = std::make_shared<HaloArguments>();
  bench::HaloBench& asked = arguments->bench;
  CLI::App* command = bench.add_subcommand(
      "halo", "Exchange the ghost cells of a grid cut into blocks, as LLNL's Comb does: time of a cycle");
  command->add_option("--size", arguments->size, "Cells of the grid, X_Y_Z")->delimiter('_')->expected(3);
  command->add_option("--divide", arguments->divide, "Blocks along each dimension, A_B_C (default: by the sizes)")
      ->delimiter('_')
      ->expected(3);
  command->add_option("--periodic", arguments->periodic, "0 or 1 for each dimension")->delimiter('_')->expected(3);
  command->add_option("--ghost", arguments->ghost, "Ghost cells on either side, for each dimension")
      ->delimiter('_')
      ->expected(3);
  command->add_option("--vars", asked.halo.variables, "Variables of a cell, doubles")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--blocks", asked.blocks, "Blocks of each process, where --divide does not say")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--cycles", asked.cycles, "Timed exchanges")
      ->check(CLI::Range(std::size_t{1}, std::size_t{10'000'000}))
      ->capture_default_str();
  command->add_option("--warmup", asked.warmup, "Not timed ones before them")->capture_default_str();
  command
      ->add_option("--batch", asked.batch,
                   "Exchanges of each cycle, in modes graph and resident without the CPU between them")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000}))
      ->capture_default_str();
  command->add_option("--memory", arguments->memory, "Where the fields are")
      ->check(CLI::IsMember({"host", "pinned", "cuda", "emulated"}))
      ->capture_default_str();
  std::vector<std::string> modes = names_of(kHaloModes);
  modes.emplace_back("all");
  command->add_option("--mode", arguments->modes, "How cells travel: one or several with commas, or all of them")
      ->delimiter(',')
      ->check(CLI::IsMember(modes))
      ->capture_default_str();
  command
      ->add_option("--per", arguments->messages,
                   "What is one message, in modes fused, stream and stacked: all for a process, or a block")
      ->check(CLI::IsMember(names_of(bench::kHaloMessages)))
      ->capture_default_str();
  command->add_flag("--check", asked.check, "Look at every cell, in cycles that are not timed");
  command->add_flag("--model", arguments->model,
                    "Beside each measurement: what no exchange can undercut, by what `brant calibrate --model` kept, "
                    "the resource that stands in the way, and an estimate");
  command->add_option("--parameters", arguments->parameters,
                      "The same by this file (default: where `brant calibrate --model` keeps it)");
  command->add_option("--json", asked.json, "Append one JSON object to this file");
  command->callback([arguments, &exit_code] { exit_code = run_halo(*arguments); });
}

}  // namespace brant::cli
