#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/env.h"
#include "bench/mpi/mpi_benchmark.h"
#include "bench/mpi/mpi_start.h"
#include "bench/nccl/nccl_library.h"
#include "bench/runner/measure.h"
#include "bench/runner/options.h"
#include "bench/runner/row.h"
#include "bench/runner/self_start.h"
#include "cli/bench_coll.h"
#include "cli/bench_halo.h"
#include "cli/bench_interference.h"
#include "cli/bench_kernel_puts.h"
#include "cli/bench_memspeed.h"
#include "cli/bench_mpis.h"
#include "cli/bench_notify.h"
#include "cli/bench_python.h"
#include "cli/bench_rma.h"
#include "cli/bench_run.h"
#include "cli/commands.h"

namespace brant::cli {
namespace {

constexpr std::size_t kWindowMax = 1024;
constexpr bench::Model kModels[] = {bench::Model::channel, bench::Model::message,   bench::Model::put,
                                    bench::Model::get,     bench::Model::fetch_add, bench::Model::told_put,
                                    bench::Model::rpc,     bench::Model::mpi};
/// The rivals that play in our own processes.
constexpr const char* kRivals[] = {"ucx", "nccl"};
constexpr bench::Alloc kAllocs[] = {bench::Alloc::library, bench::Alloc::malloc, bench::Alloc::cuda,
                                    bench::Alloc::torch_like};

struct BenchArguments {
  bench::Options options;
  std::optional<std::string> sizes;
  std::string min = "1";
  std::string max = "16M";
  std::string memory = "host";
  std::string alloc;
  std::string path = "auto";
  std::vector<std::string> peers;
  std::string api = "post";
  std::string model = "channel";
  std::string trigger = "host";
};

std::vector<std::size_t> sizes_of(const BenchArguments& arguments) {
  if (arguments.sizes) return bench::parse_sizes(*arguments.sizes);
  if (arguments.model == bench::model_name(bench::Model::fetch_add)) return {sizeof(std::uint64_t)};
  return bench::sizes_between(bench::parse_size(arguments.min), bench::parse_size(arguments.max));
}

/// The rivals that have processes of their own.
std::vector<std::string> mpis(const BenchArguments& arguments) {
  std::vector<std::string> peers = arguments.peers;
  std::erase_if(peers, [](const std::string& peer) {
    return std::find(std::begin(kRivals), std::end(kRivals), peer) != std::end(kRivals);
  });
  return peers;
}

/// Throws Error for rivals that do not play in this benchmark.
void require_peers(const BenchArguments& arguments, const bench::Options& options) {
  const std::vector<std::string> others = mpis(arguments);
  if (options.model != bench::Model::mpi && !others.empty())
    throw Error(Status::invalid_argument,
                fmt::format("--peer {0} is an MPI: add --model mpi, or use --peer ucx or nccl", others.front()));
  if (options.model != bench::Model::mpi && arguments.peers.size() > 1)
    throw Error(Status::invalid_argument, "--peer: one rival at a time plays in the same processes; name it once");
  if (!others.empty() && options.memory != MemoryKind::host)
    throw Error(Status::invalid_argument,
                fmt::format("--peer {} measures an MPI in host memory, not {} memory: leave --peer or --memory out",
                            others.front(), memory_kind_name(options.memory)));
}

/// Who makes the memory where nobody has said so: what programs of MPI have, or the library.
bench::Alloc usual_alloc(const bench::Options& options) {
  const bool of_malloc = options.model == bench::Model::mpi && options.memory == MemoryKind::host;
  return of_malloc ? bench::Alloc::malloc : bench::Alloc::library;
}

bench::Options checked_options(const BenchArguments& arguments) {
  bench::Options options = arguments.options;
  options.sizes = sizes_of(arguments);
  // CLI11 has checked that these are among the known names.
  static_cast<void>(memory_kind_from_name(arguments.memory, options.memory));
  static_cast<void>(path_from_name(arguments.path, options.path));
  for (const bench::Rival rival : {bench::Rival::ucx, bench::Rival::nccl}) {
    if (std::find(arguments.peers.begin(), arguments.peers.end(), bench::rival_name(rival)) != arguments.peers.end())
      options.rival = rival;
  }
  for (const bench::Model model : kModels) {
    if (arguments.model == bench::model_name(model)) options.model = model;
  }
  options.alloc = usual_alloc(options);
  for (const bench::Alloc alloc : kAllocs) {
    if (arguments.alloc == bench::alloc_name(alloc)) options.alloc = alloc;
  }
  options.trigger = arguments.trigger == "stream" ? bench::Trigger::stream : bench::Trigger::host;
  options.coroutines = arguments.api == "await";
  require_peers(arguments, options);
  bench::require_sense(options);
  return options;
}

/// In processes of the rivals, then in those of brant's own MPI.
void run_mpi(const bench::Options& options, const std::vector<std::string>& rivals) {
  if (const std::string library(env(bench::mpi::kLibraryVariable)); !library.empty())
    return bench::mpi::run_benchmark(options, {library, "mpi"});
  const std::string own = bench::mpi::own_library();
  start_behind_mpis(rivals, 2);
  bench::mpi::run_benchmark(options, {own, ""});
}

constexpr const char* kPython = "python";

/// Options that the benchmark of Python does not have are refused rather than ignored.
PythonBenchmark python_benchmark(const BenchArguments& arguments) {
  const bench::Options& options = arguments.options;
  const bool fits = arguments.path == "auto" && arguments.api == "post" && arguments.trigger == "host" &&
                    !options.pairs && !options.spin && options.warmup < 0;
  if (!fits)
    throw Error(Status::invalid_argument,
                "--model python knows --sizes, --memory, --alloc, --iterations, --check, --peer and --json alone");
  PythonBenchmark benchmark;
  if (arguments.sizes) benchmark.sizes = fmt::format("{}", fmt::join(bench::parse_sizes(*arguments.sizes), ","));
  benchmark.memory = arguments.memory;
  benchmark.alloc = arguments.alloc;
  benchmark.json = options.json;
  if (options.iterations != 0) benchmark.iterations = std::to_string(options.iterations);
  benchmark.peers = arguments.peers;
  benchmark.check = options.check;
  return benchmark;
}

int run_bench(const BenchArguments& arguments) {
  return run_benchmark("brant bench", [&] {
    if (arguments.model == kPython) run_python(python_benchmark(arguments));
    const bench::Options options = checked_options(arguments);
    const bench::RowFile probe(options.json);  // a file that cannot be written is found before anything starts
    if (options.model == bench::Model::mpi) return run_mpi(options, mpis(arguments));
    if (options.rival == bench::Rival::nccl) static_cast<void>(bench::nccl::library());  // nor a library
    if (bench::started_alone()) bench::restart_as_job(2);
    bench::run_benchmark(options);
  });
}

std::vector<std::string> names_of_models(bench::Kind kind) {
  if (kind == bench::Kind::bidirectional) return {bench::model_name(bench::Model::mpi)};
  std::vector<std::string> names;
  for (const bench::Model model : kModels) names.emplace_back(bench::model_name(model));
  if (kind == bench::Kind::latency) names.emplace_back(kPython);
  return names;
}

CLI::App* add_one(CLI::App& bench, bench::Kind kind, const char* text, int& exit_code) {
  auto arguments = std::make_shared<BenchArguments>();
  arguments->options.kind = kind;
  if (kind == bench::Kind::bidirectional) arguments->model = bench::model_name(bench::Model::mpi);
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
                   "Who makes the buffers: library (the default): Runtime::allocate, or MPI_Win_allocate with --model "
                   "mpi; malloc (the default of --model mpi in host memory); cuda: plain cuMemAlloc; torch-like: one "
                   "large block of either, messages are slices of it at odd addresses")
      ->check(CLI::IsMember({"library", "malloc", "cuda", "torch-like"}));
  command->add_option("--path", arguments->path, "Force the way the bytes go")
      ->check(CLI::IsMember(requestable_paths()))
      ->capture_default_str();
  command
      ->add_option(
          "--model", arguments->model,
          "channel: sends and receives; message: entry methods of chares that invoke each other; put, get, "
          "fetch-add: one side writes into memory of the other, reads it, or counts in it; told-put: both put in "
          "turns, with a word behind the bytes; rpc: one side calls functions of the other; mpi: sends and receives of "
          "brant's MPI, as OSU's programs measure "
          "them; python: arrays over channels of Python (`python3 -m brant.bench` has more)")
      ->check(CLI::IsMember(names_of_models(kind)))
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
  command->add_option(
      "--peer", arguments->peers,
      "Also measure a rival in the same processes, in turns: ucx, or nccl (with --memory cuda). With "
      "--model mpi, before brant: 'mpi' for the mpiexec on PATH, or the path of an mpiexec, several times "
      "if you like. With --model python, after brant: mpi4py, charm4py, ucxx and others, or all");
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
  CLI::App* bench = app.add_subcommand("bench", "Measure. Starts itself on 2 processes when nobody else did");
  bench->require_subcommand(0, 1);  // so that an unknown name is reported by name
  bench->callback([bench] {
    if (!bench->get_subcommands().empty()) return;
    std::vector<std::string> names;
    for (const CLI::App* each : bench->get_subcommands([](CLI::App*) { return true; }))
      names.push_back(each->get_name());
    throw CLI::RequiredError(fmt::format("What to measure ({})", fmt::join(names, ", ")));
  });
  add_one(*bench, bench::Kind::latency,
          "Ping-pong of one message over a channel; one way = round trip / 2. Puts, gets, atomics: until they are done",
          exit_code);
  add_one(*bench, bench::Kind::bandwidth, "Windows of messages back to back, each answered by 4 bytes", exit_code);
  add_one(*bench, bench::Kind::bidirectional, "Windows of messages both ways at once, with --model mpi", exit_code);
  add_bench_coll(*bench, exit_code);
  add_bench_rma(*bench, exit_code);
  add_bench_memspeed(*bench, exit_code);
  add_bench_halo(*bench, exit_code);
  add_bench_notify(*bench, exit_code);
  add_bench_kernel_puts(*bench, exit_code);
  add_bench_interference(*bench, exit_code);
}

}  // namespace brant::cli
