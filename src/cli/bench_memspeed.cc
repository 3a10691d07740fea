#include "cli/bench_memspeed.h"

#include <memory>
#include <string>

#include "bench/memspeed/memspeed.h"
#include "bench/runner/options.h"
#include "bench/runner/row.h"
#include "bench/runner/self_start.h"
#include "cli/bench_run.h"
#include "cli/device_choice.h"

namespace brant::cli {
namespace {

struct MemspeedArguments {
  bench::Memspeed bench;
  std::string bytes = "64M";
  std::string device = "auto";
  std::string peer;
  int ranks = 2;
};

int run_memspeed(const MemspeedArguments& arguments) {
  return run_benchmark("brant bench", [&] {
    bench::Memspeed asked = arguments.bench;
    asked.bytes = bench::parse_size(arguments.bytes);
    asked.device = device_choice(arguments.device);
    asked.ucx = !arguments.peer.empty();
    bench::require_sense(asked);
    const bench::RowFile probe(asked.json);  // a file that cannot be written is found before anything starts
    if (bench::started_alone() && arguments.ranks > 1) bench::restart_as_job(arguments.ranks);
    bench::run_memspeed(asked);
  });
}

}  // namespace

void add_bench_memspeed(CLI::App& bench, int& exit_code) {
  auto arguments = std::make_shared<MemspeedArguments>();
  bench::Memspeed& asked = arguments->bench;
  CLI::App* command = bench.add_subcommand("memspeed",
                                           "Copies between every two memories that two processes have, and how the CPU "
                                           "reads and writes each, as Realm does");
  command->add_option("--bytes", arguments->bytes, "Size of each memory, for example 64M")->capture_default_str();
  command->add_option("--iterations", asked.iterations, "Timed full copies and passes; 25 times as many short copies")
      ->check(CLI::Range(std::size_t{1}, std::size_t{100'000}))
      ->capture_default_str();
  command
      ->add_option("--device", arguments->device, "auto (BRANT_GPU, or the GPU if there is one), cuda, emulated, none")
      ->check(CLI::IsMember(device_names()))
      ->capture_default_str();
  command->add_option("--ranks", arguments->ranks, "Processes, where nobody else starts them")
      ->check(CLI::Range(1, 2))
      ->capture_default_str();
  command->add_option("--peer", arguments->peer, "Also measure raw UCX between the processes")
      ->check(CLI::IsMember({"ucx"}));
  command->add_flag("--check", asked.check, "Compare every byte, in copies that are not timed");
  command->add_option("--json", asked.json, "Append one JSON object per row to this file");
  command->callback([arguments, &exit_code] { exit_code = run_memspeed(*arguments); });
}

}  // namespace brant::cli
