#include "cli/bench_coll.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/env.h"
#include "bench/coll/coll.h"
#include "bench/mpi/mpi_start.h"
#include "bench/nccl/nccl_library.h"
#include "bench/runner/options.h"
#include "bench/runner/row.h"
#include "cli/bench_mpis.h"
#include "cli/bench_run.h"

namespace brant::cli {
namespace {

/// The rival that plays in our own processes.
constexpr const char* kNccl = "nccl";
/// The model that is brant's MPI.
constexpr const char* kMpi = "mpi";

struct CollArguments {
  bench::CollBench bench;
  std::optional<std::string> sizes;
  std::string min = "8";
  std::string max = "16M";
  std::string way = "automatic";
  std::string alloc;
  std::vector<std::string> peers;
  std::string memory = "host";
  std::string model = "team";
  std::string trigger = "host";
  int ranks = 2;
};

/// Of the rivals those that have processes of their own.
std::vector<std::string> mpis(const CollArguments& arguments) {
  std::vector<std::string> peers = arguments.peers;
  std::erase(peers, kNccl);
  return peers;
}

/// brant's own MPI is called as programs of MPI call it.
void require_of_mpi(const bench::CollBench& asked) {
  if (asked.device)
    throw Error(Status::invalid_argument, "--model mpi is measured in host memory: leave --memory device out");
  if (asked.way != TeamWay::automatic || asked.alloc != bench::Alloc::malloc)
    throw Error(Status::invalid_argument,
                "--model mpi: programs of MPI have memory of malloc and no option --way; leave --alloc and --way out");
}

void require_sense(const bench::CollBench& asked, const std::vector<std::string>& mpis) {
  if (asked.trigger != bench::Trigger::host && !asked.device)
    throw Error(Status::invalid_argument, "streams and graphs carry out what lies on the device: add --memory device");
  if (asked.device && !mpis.empty())
    throw Error(Status::invalid_argument,
                fmt::format("--peer {} measures an MPI in host memory: leave --memory device out, or take --peer nccl",
                            mpis.front()));
  if (asked.nccl && asked.kind == CollectiveKind::barrier)
    throw Error(Status::invalid_argument,
                "--peer nccl: NCCL has no barrier; leave --peer out, or measure `brant bench allreduce --sizes 8`");
  if (asked.nccl && !asked.device)
    throw Error(Status::invalid_argument,
                "--peer nccl: NCCL moves memory of GPUs only, not host memory; add --memory device");
}

/// Of the host or of streams, by who starts the calls.
void take_way(const std::string& way, bench::CollBench& asked) {
  const bool of_streams = asked.trigger != bench::Trigger::host;
  if (of_streams ? stream_way_from_name(way, asked.stream_way) : team_way_from_name(way, asked.way)) return;
  throw Error(Status::invalid_argument,
              fmt::format("--way {}: {}", way,
                          of_streams ? "of streams and graphs there are automatic, lines, slots and slices"
                                     : "there are automatic, messages, lines, slots, slices, reads and hosts"));
}

bench::CollBench checked(const CollArguments& arguments) {
  bench::CollBench asked = arguments.bench;
  asked.sizes = arguments.sizes
                    ? bench::parse_sizes(*arguments.sizes)
                    : bench::sizes_between(bench::parse_size(arguments.min), bench::parse_size(arguments.max));
  const bool of_malloc = arguments.alloc == "malloc" || (arguments.alloc.empty() && arguments.model == kMpi);
  asked.alloc = of_malloc ? bench::Alloc::malloc : bench::Alloc::library;
  asked.device = arguments.memory == "device";
  asked.trigger = arguments.trigger == "graph"    ? bench::Trigger::graph
                  : arguments.trigger == "stream" ? bench::Trigger::stream
                                                  : bench::Trigger::host;
  take_way(arguments.way == "auto" ? "automatic" : arguments.way, asked);
  asked.nccl = std::find(arguments.peers.begin(), arguments.peers.end(), kNccl) != arguments.peers.end();
  require_sense(asked, mpis(arguments));
  if (arguments.model == kMpi) require_of_mpi(asked);
  return asked;
}

int run_coll(const CollArguments& arguments) {
  return run_benchmark("brant bench", [&] {
    const bench::CollBench asked = checked(arguments);
    const std::vector<std::string> rivals = mpis(arguments);
    const bench::RowFile probe(asked.json);  // a file that cannot be written is found before anything starts
    if (asked.nccl) {
      bench::nccl::leave_nvls_out();
      static_cast<void>(bench::nccl::library());  // nor a library that is not there
    }
    if (const std::string library(env(bench::mpi::kLibraryVariable)); !library.empty())
      return bench::run_collectives_of_mpi(asked, {library, "mpi"});
    const std::string own = arguments.model == kMpi ? bench::mpi::own_library() : "";
    start_behind_mpis(rivals, arguments.ranks);
    own.empty() ? bench::run_collectives(asked) : bench::run_collectives_of_mpi(asked, {own, ""});
  });
}

void add_one(CLI::App& bench, CollectiveKind kind, const char* text, int& exit_code) {
  auto arguments = std::make_shared<CollArguments>();
  bench::CollBench& asked = arguments->bench;
  asked.kind = kind;
  std::string name(collective_name(kind));
  std::replace(name.begin(), name.end(), '_', '-');
  CLI::App* command = bench.add_subcommand(name, text);
  if (kind != CollectiveKind::barrier) {
    CLI::Option* sizes = command->add_option("--sizes", arguments->sizes, "Sizes, for example 8,64K,1M");
    command->add_option("--min", arguments->min, "Smallest size; powers of two from here")
        ->capture_default_str()
        ->excludes(sizes);
    command->add_option("--max", arguments->max, "Largest size")->capture_default_str()->excludes(sizes);
  }
  command->add_option("--ranks", arguments->ranks, "Processes, where nobody else starts them")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--way", arguments->way,
                   "Force a way: messages, lines, slots, slices, reads or hosts; of streams and graphs lines, slots or "
                   "slices")
      ->capture_default_str();
  command
      ->add_option("--model", arguments->model,
                   "team: collectives of brant; mpi: those of its MPI, called as programs of MPI do")
      ->check(CLI::IsMember({"team", "mpi"}))
      ->capture_default_str();
  command
      ->add_option("--alloc", arguments->alloc,
                   "Memory of Runtime::allocate (library, the default), or of malloc (that of --model mpi)")
      ->check(CLI::IsMember({"library", "malloc"}));
  command->add_option(
      "--peer", arguments->peers,
      "Measure a rival before brant: 'nccl' (with --memory device), 'mpi' for the mpiexec on PATH, or the "
      "path of an mpiexec. May be given several times");
  command->add_option("--memory", arguments->memory, "Where the buffers lie")
      ->check(CLI::IsMember({"host", "device"}))
      ->capture_default_str();
  command->add_option("--trigger", arguments->trigger, "Who starts the calls: the host, a stream, or a captured graph")
      ->check(CLI::IsMember({"host", "stream", "graph"}))
      ->capture_default_str();
  command->add_option("--iterations", asked.iterations, "Samples per size (default: by size)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{10'000'000}));
  command->add_flag("--check", asked.check, "Look at every element, in calls that are not timed");
  command->add_option("--json", asked.json, "Append one JSON object per row to this file");
  command->callback([arguments, &exit_code] { exit_code = run_coll(*arguments); });
}

}  // namespace

void add_bench_coll(CLI::App& bench, int& exit_code) {
  add_one(bench, CollectiveKind::allreduce, "Sum of floats at all processes: time and bandwidth as nccl-tests count",
          exit_code);
  add_one(bench, CollectiveKind::broadcast, "What rank 0 has, at all processes", exit_code);
  add_one(bench, CollectiveKind::allgather, "A block of each process at all of them; sizes are of all blocks",
          exit_code);
  add_one(bench, CollectiveKind::reduce_scatter,
          "A block of the sum of floats at each process; sizes are of all blocks", exit_code);
  add_one(bench, CollectiveKind::alltoall, "A block of each process for each other one; sizes are of all blocks",
          exit_code);
  add_one(bench, CollectiveKind::barrier, "All processes wait for each other", exit_code);
}

}  // namespace brant::cli
