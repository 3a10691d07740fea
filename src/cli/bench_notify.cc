#include "cli/bench_notify.h"

#include <memory>
#include <string>

#include "bench/notify/measure.h"
#include "bench/runner/row.h"
#include "bench/runner/self_start.h"
#include "cli/bench_run.h"

namespace brant::cli {
namespace {

struct NotifyArguments {
  bench::NotifyOptions options;
  std::string memory = "cuda";
};

int run_notify(NotifyArguments& arguments) {
  static_cast<void>(memory_kind_from_name(arguments.memory, arguments.options.memory));
  return run_benchmark("brant bench notify", [&] {
    const bench::RowFile probe(arguments.options.json);  // a file that cannot be written is found first
    if (bench::started_alone()) bench::restart_as_job(2);
    bench::measure_notify(arguments.options);
  });
}

}  // namespace

void add_bench_notify(CLI::App& bench, int& exit_code) {
  auto arguments = std::make_shared<NotifyArguments>();
  CLI::App* command = bench.add_subcommand(
      "notify", "Bells between kernels that run and the CPU, or another process's kernel; streams; launches");
  command->add_option("--memory", arguments->memory, "Whose bells: cuda, or emulated (threads of the CPU)")
      ->check(CLI::IsMember({"cuda", "emulated"}))
      ->capture_default_str();
  command->add_option("--iterations", arguments->options.iterations, "Rings of each kind")
      ->check(CLI::Range(std::size_t{1}, std::size_t{10'000'000}))
      ->capture_default_str();
  command->add_flag("--check", arguments->options.check,
                    "Look whether what was written before a ring is there behind it");
  command->add_option("--json", arguments->options.json, "Append one JSON object per row to this file");
  command->callback([arguments, &exit_code] { exit_code = run_notify(*arguments); });
}

}  // namespace brant::cli
