#include "cli/bench_kernel_puts.h"

#include <algorithm>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "bench/kernel_puts/kernel_puts.h"
#include "bench/runner/options.h"
#include "bench/runner/row.h"
#include "bench/runner/self_start.h"
#include "cli/bench_run.h"

namespace brant::cli {
namespace {

/// Kernels put words.
constexpr std::size_t kWordBytes = 8;

struct KernelPutsArguments {
  bench::KernelPutsOptions options;
  std::string memory = "cuda";
  std::string sizes = "8,1K,64K,1M,16M";
};

int run_kernel_puts(KernelPutsArguments& arguments) {
  bench::KernelPutsOptions& options = arguments.options;
  static_cast<void>(memory_kind_from_name(arguments.memory, options.memory));
  return run_benchmark("brant bench kernel-puts", [&] {
    options.sizes = bench::parse_sizes(arguments.sizes);
    for (const std::size_t bytes : options.sizes) {
      if (bytes == 0 || bytes % kWordBytes != 0)
        throw Error(Status::invalid_argument,
                    fmt::format("--sizes {}: kernels put words; use multiples of {}", bytes, kWordBytes));
    }
    const bench::RowFile probe(options.json);  // a file that cannot be written is found first
    if (bench::started_alone()) bench::restart_as_job(2);
    bench::measure_kernel_puts(options);
  });
}

}  // namespace

void add_bench_kernel_puts(CLI::App& bench, int& exit_code) {
  auto arguments = std::make_shared<KernelPutsArguments>();
  bench::KernelPutsOptions& options = arguments->options;
  CLI::App* command = bench.add_subcommand(
      "kernel-puts",
      "Puts, gets, atomics and barriers that kernels start by themselves over a window: no CPU takes part");
  command->add_option("--memory", arguments->memory, "Of which device: cuda, or emulated (threads of the CPU)")
      ->check(CLI::IsMember({"cuda", "emulated"}))
      ->capture_default_str();
  command->add_option("--sizes", arguments->sizes, "Sizes, multiples of 8; one block up to 64K, all blocks above 32K")
      ->capture_default_str();
  command->add_option("--blocks", options.blocks, "That put side by side")
      ->check(CLI::Range(1u, bench::kPuttingBlocksMax))
      ->capture_default_str();
  command->add_option("--iterations", options.iterations, "Rounds of each kind")
      ->check(CLI::Range(std::size_t{1}, std::size_t{10'000'000}))
      ->capture_default_str();
  command->add_flag("--check", options.check, "Look whether what was put before a flag is there behind it");
  command->add_option("--json", options.json, "Append one JSON object per row to this file");
  command->callback([arguments, &exit_code] { exit_code = run_kernel_puts(*arguments); });
}

}  // namespace brant::cli
