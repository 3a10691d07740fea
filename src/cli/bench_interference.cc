#include "cli/bench_interference.h"

#include <memory>
#include <string>

#include "bench/interference/measure.h"
#include "bench/runner/options.h"
#include "bench/runner/row.h"
#include "bench/runner/self_start.h"
#include "cli/bench_run.h"

namespace brant::cli {
namespace {

struct InterferenceArguments {
  bench::InterferenceOptions options;
  std::string sizes = "64,4K,64K,1M,4M,16M";
  std::string memory = "pinned";
  std::string path = "auto";
};

int run_interference(InterferenceArguments& arguments) {
  return run_benchmark("brant bench interference", [&] {
    bench::InterferenceOptions& options = arguments.options;
    options.sizes = bench::parse_sizes(arguments.sizes);
    // CLI11 has checked that these are among the known names.
    static_cast<void>(memory_kind_from_name(arguments.memory, options.memory));
    static_cast<void>(path_from_name(arguments.path, options.path));
    bench::require_sense(options);
    const bench::RowFile probe(options.json);  // a file that cannot be written is found first
    if (bench::started_alone()) bench::restart_as_job(2);
    bench::measure_interference(options);
  });
}

}  // namespace

void add_bench_interference(CLI::App& bench, int& exit_code) {
  auto arguments = std::make_shared<InterferenceArguments>();
  bench::InterferenceOptions& options = arguments->options;
  CLI::App* command = bench.add_subcommand(
      "interference", "Sends of the CPU beside a kernel that goes on writing, and that kernel beside bells and sends");
  command->add_option("--sizes", arguments->sizes, "Of what is sent, in whole words of 8 bytes")->capture_default_str();
  command
      ->add_option("--memory", arguments->memory,
                   "Where the kernel writes and the CPU sends from: pinned, cuda, or emulated (threads of the CPU)")
      ->check(CLI::IsMember({"pinned", "cuda", "emulated"}))
      ->capture_default_str();
  command->add_option("--path", arguments->path, "Force the way the bytes go")
      ->check(CLI::IsMember(requestable_paths()))
      ->capture_default_str();
  command
      ->add_option(
          "--blocks", options.blocks,
          "Blocks of the kernel that is measured beside one of 1 block (default: all that run at once; 4 of an "
          "emulated device)")
      ->check(CLI::Range(1u, 65535u));
  command->add_option("--iterations", options.iterations, "Timed rounds of each case")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000}))
      ->capture_default_str();
  command->add_option("--warmup", options.warmup, "Not timed ones, in each of four turns")
      ->check(CLI::Range(std::size_t{0}, std::size_t{10'000}))
      ->capture_default_str();
  command->add_flag(
      "--check", options.check,
      "Look at every word written and sent, and that each ring is seen once, in rounds that are not timed");
  command->add_option("--json", options.json, "Append one JSON object per row to this file");
  command->callback([arguments, &exit_code] { exit_code = run_interference(*arguments); });
}

}  // namespace brant::cli
