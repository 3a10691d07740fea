#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/nccl/nccl_library.h"
#include "bench/runner/measure.h"
#include "bench/runner/options.h"
#include "bench/runner/row.h"
#include "bench/runner/self_start.h"
#include "cli/bench_coll.h"
#include "cli/bench_halo.h"
#include "cli/bench_interference.h"
#include "cli/bench_memspeed.h"
#include "cli/bench_notify.h"
#include "cli/bench_rma.h"
#include "cli/bench_run.h"
#include "cli/commands.h"

namespace brant::cli {
namespace {

constexpr std::size_t kWindowMax = 1024;
constexpr bench::Model kModels[] = {bench::Model::channel, bench::Model::message, bench::Model::put, bench::Model::get,
                                    bench::Model::fetch_add};
constexpr bench::Alloc kAllocs[] = {bench::Alloc::library, bench::Alloc::malloc, bench::Alloc::cuda,
                                    bench::Alloc::torch_like};

struct BenchArguments {
  bench::Options options;
  std::optional<std::string> sizes;
  std::string min = "1";
  std::string max = "16M";
  std::string memory = "host";
  std::string alloc = "library";
  std::string path = "auto";
  std::string peer;
  std::string api = "post";
  std::string model = "channel";
  std::string trigger = "host";
};

std::vector<std::size_t> sizes_of(const BenchArguments& arguments) {
  if (arguments.sizes) return bench::parse_sizes(*arguments.sizes);
  if (arguments.model == bench::model_name(bench::Model::fetch_add)) return {sizeof(std::uint64_t)};
  return bench::sizes_between(bench::parse_size(arguments.min), bench::parse_size(arguments.max));
}

bench::Options checked_options(const BenchArguments& arguments) {
  bench::Options options = arguments.options;
  options.sizes = sizes_of(arguments);
  // CLI11 has checked that these are among the known names.
  static_cast<void>(memory_kind_from_name(arguments.memory, options.memory));
  static_cast<void>(path_from_name(arguments.path, options.path));
  for (const bench::Rival rival : {bench::Rival::ucx, bench::Rival::nccl}) {
    if (arguments.peer == bench::rival_name(rival)) options.rival = rival;
  }
  for (const bench::Model model : kModels) {
    if (arguments.model == bench::model_name(model)) options.model = model;
  }
  for (const bench::Alloc alloc : kAllocs) {
    if (arguments.alloc == bench::alloc_name(alloc)) options.alloc = alloc;
  }
  options.trigger = arguments.trigger == "stream" ? bench::Trigger::stream : bench::Trigger::host;
  options.coroutines = arguments.api == "await";
  bench::require_sense(options);
  return options;
}

int run_bench(const BenchArguments& arguments) {
  return run_benchmark("brant bench", [&] {
    const bench::Options options = checked_options(arguments);
    const bench::RowFile probe(options.json);  // a file that cannot be written is found before anything starts
    if (options.rival == bench::Rival::nccl) static_cast<void>(bench::nccl::library());  // nor a library
    if (bench::started_alone()) bench::restart_as_job(2);
    bench::run_benchmark(options);
  });
}

CLI::App* add_one(CLI::App& bench, bench::Kind kind, const char* text, int& exit_code) {
  auto arguments = std::make_shared<BenchArguments>();
  arguments->options.kind = kind;
  bench::Options& options = arguments->options;
  CLI::App* command = bench.add_subcommand(bench::kind_name(kind), text);
  CLI::Option* sizes = command->add_option("--sizes", arguments->sizes, "Message sizes, for example 8,64K,1M");
  command->add_option("--min", arguments->min, "Smallest size; powers of two from here")
      ->capture_default_str()
      ->excludes(sizes);
  command->add_option("--max", arguments->max, "Largest size")->capture_default_str()->excludes(sizes);
  command->add_option("--memory", arguments->memory, "Where the buffers are")
      ->check(CLI::IsMember({"host", "pinned", "cuda", "cuda-managed", "emulated"}))
      ->capture_default_str();
  command
      ->add_option("--alloc", arguments->alloc,
                   "Who makes the buffers: library: Runtime::allocate; malloc; cuda: plain cuMemAlloc; torch-like: one "
                   "large block of either, messages are slices of it at odd addresses")
      ->check(CLI::IsMember({"library", "malloc", "cuda", "torch-like"}))
      ->capture_default_str();
  command->add_option("--path", arguments->path, "Force the way the bytes go")
      ->check(CLI::IsMember(requestable_paths()))
      ->capture_default_str();
  command
      ->add_option("--model", arguments->model,
                   "channel: sends and receives; message: entry methods of chares that invoke each other; put, get, "
                   "fetch-add: one side writes into memory of the other, reads it, or counts in it")
      ->check(CLI::IsMember({"channel", "message", "put", "get", "fetch-add"}))
      ->capture_default_str();
  command
      ->add_option("--trigger", arguments->trigger,
                   "host: posts by the CPU; stream: kernels in a captured graph of the device, no CPU between")
      ->check(CLI::IsMember({"host", "stream"}))
      ->capture_default_str();
  command
      ->add_option("--iterations", options.iterations,
                   kind == bench::Kind::latency ? "Timed round trips per size (default: by size)"
                                                : "Timed windows per size (default: by size)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{10'000'000}));
  command->add_option("--warmup", options.warmup, "Not timed ones before them (default: a tenth)")
      ->check(CLI::Range(0L, 10'000'000L));
  command
      ->add_option("--peer", arguments->peer,
                   "Also measure a rival in the same processes, in turns: ucx, or nccl (with --memory cuda)")
      ->check(CLI::IsMember({"ucx", "nccl"}));
  command->add_flag("--check", options.check, "Look at every byte of every message, in a pass that is not timed");
  command->add_option("--json", options.json, "Append one JSON object per row to this file");
  command->add_flag("--pairs", options.pairs,
                    "Rank i with rank i + n/2, all at once (what more than 2 ranks do anyway)");
  command->add_flag("--spin", options.spin, "Never sleep while waiting");
  if (kind == bench::Kind::latency) {
    command->add_option("--api", arguments->api, "post: plain posts; await: coroutines")
        ->check(CLI::IsMember({"post", "await"}))
        ->capture_default_str();
  } else {
    command->add_option("--window", options.window, "Messages back to back before a reply")
        ->check(CLI::Range(std::size_t{1}, kWindowMax))
        ->capture_default_str();
  }
  command->callback([arguments, &exit_code] { exit_code = run_bench(*arguments); });
  return command;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* bench = app.add_subcommand(
      "bench",
      "Measure: brant bench latency|bandwidth|allreduce|broadcast|allgather|barrier|rma|"
      "memspeed|halo|notify|interference [OPTIONS]. Starts itself on 2 processes when nobody else did");
  bench->require_subcommand(0, 1);  // so that an unknown name is reported by name
  bench->callback([bench] {
    if (bench->get_subcommands().empty())
      throw CLI::RequiredError(
          "A subcommand (latency, bandwidth, allreduce, broadcast, allgather, barrier, rma, memspeed, halo, notify or "
          "interference)");
  });
  add_one(*bench, bench::Kind::latency,
          "Ping-pong of one message over a channel; one way = round trip / 2. Puts, gets, atomics: until they are done",
          exit_code);
  add_one(*bench, bench::Kind::bandwidth, "Windows of messages back to back, each answered by 4 bytes", exit_code);
  add_bench_coll(*bench, exit_code);
  add_bench_rma(*bench, exit_code);
  add_bench_memspeed(*bench, exit_code);
  add_bench_halo(*bench, exit_code);
  add_bench_notify(*bench, exit_code);
  add_bench_interference(*bench, exit_code);
}

}  // namespace brant::cli
