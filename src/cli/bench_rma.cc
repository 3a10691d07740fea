#include "cli/bench_rma.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/env.h"
#include "bench/mpi/mpi_start.h"
#include "bench/rma/rma.h"
#include "bench/runner/options.h"
#include "bench/runner/row.h"
#include "cli/bench_mpis.h"
#include "cli/bench_run.h"
#include "cli/device_choice.h"

namespace brant::cli {
namespace {

constexpr std::size_t kWindowMax = 1024;
/// The rival that plays in our own processes.
constexpr const char* kUcx = "ucx";
constexpr bench::RmaSync kSyncs[] = {bench::RmaSync::block, bench::RmaSync::flood, bench::RmaSync::notify,
                                     bench::RmaSync::inject};

struct RmaArguments {
  bench::RmaBench bench;
  std::optional<std::string> sizes;
  std::string min = "8";
  std::string max = "4M";
  std::vector<std::string> operations{"put", "get"};
  std::string pattern = "all";
  std::vector<std::string> syncs{"block", "flood"};
  std::string device = "auto";
  std::string path = "auto";
  unsigned busy_ms = 100;
  std::vector<std::string> peers;
};

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> mpis(const RmaArguments& arguments) {
  std::vector<std::string> peers = arguments.peers;
  std::erase(peers, kUcx);
  return peers;
}

/// An MPI plays in host memory, and is not notified.
void require_sense(const bench::RmaBench& asked, const std::string& mpi) {
  const bool host = asked.patterns.empty() || std::any_of(asked.patterns.begin(), asked.patterns.end(),
                                                          [](bench::RmaPattern each) { return !each.needs_device(); });
  if (!host)
    throw Error(Status::invalid_argument,
                fmt::format("--peer {}: an MPI is measured in host memory; add --pattern ss or ps", mpi));
  if (asked.syncs == std::vector{bench::RmaSync::notify})
    throw Error(Status::invalid_argument,
                fmt::format("--peer {}: MPI tells no target of puts; add --sync block or flood", mpi));
  if (asked.sizes.back() > std::size_t{std::numeric_limits<int>::max()})
    throw Error(Status::invalid_argument,
                fmt::format("--peer {}: MPI counts bytes up to 2147483647; use smaller sizes", mpi));
}

bench::RmaBench checked(const RmaArguments& arguments) {
  bench::RmaBench asked = arguments.bench;
  asked.sizes = arguments.sizes
                    ? bench::parse_sizes(*arguments.sizes)
                    : bench::sizes_between(bench::parse_size(arguments.min), bench::parse_size(arguments.max));
  asked.directions.clear();
  for (const RmaDirection direction : {RmaDirection::put, RmaDirection::get}) {
    if (among(arguments.operations, bench::direction_name(direction))) asked.directions.push_back(direction);
  }
  asked.syncs.clear();
  for (const bench::RmaSync sync : kSyncs) {
    if (among(arguments.syncs, bench::sync_name(sync))) asked.syncs.push_back(sync);
  }
  if (arguments.pattern != "all") asked.patterns = bench::parse_patterns(arguments.pattern);
  asked.device = device_choice(arguments.device);
  static_cast<void>(path_from_name(arguments.path, asked.path));  // CLI11 has checked it
  asked.busy_span = std::chrono::milliseconds(arguments.busy_ms);
  asked.ucx = among(arguments.peers, kUcx);
  bench::require_sense(asked);
  for (const std::string& mpi : mpis(arguments)) require_sense(asked, mpi);
  return asked;
}

int run_rma(const RmaArguments& arguments) {
  return run_benchmark("brant bench", [&] {
    const bench::RmaBench asked = checked(arguments);
    const bench::RowFile probe(asked.json);  // a file that cannot be written is found before anything starts
    if (const std::string library(env(bench::mpi::kLibraryVariable)); !library.empty())
      return bench::run_rma_of_mpi(asked, library);
    start_behind_mpis(mpis(arguments), 2);
    bench::run_rma(asked);
  });
}

/// What is measured, in what memory.
void add_what(CLI::App& command, RmaArguments& arguments) {
  command.add_option("--op", arguments.operations, "put, get or both, with a comma")
      ->delimiter(',')
      ->check(CLI::IsMember({"put", "get"}))
      ->capture_default_str();
  command
      .add_option(
          "--pattern", arguments.pattern,
          "Memory of who puts or gets, then the other process's: gg, sg, pg, gs, ss, ps, several with commas; g: "
          "device, s: shared host memory, p: host memory of malloc. all: those that this machine has")
      ->capture_default_str();
  command
      .add_option(
          "--sync", arguments.syncs,
          "block: one transfer, waited for; flood: a window of them; notify: a window of puts, the target is told "
          "of each and answers the window; inject: the posts alone. One or several with commas")
      ->delimiter(',')
      ->check(CLI::IsMember({"block", "flood", "notify", "inject"}))
      ->capture_default_str();
  command
      .add_option("--device", arguments.device,
                  "What g is: auto (BRANT_GPU, or the GPU if there is one), cuda, emulated")
      ->check(CLI::IsMember(device_names()))
      ->capture_default_str();
  command.add_flag("--busy-target", arguments.bench.busy_target,
                   "The target computes, and never calls brant, while it is put into or got from");
  command.add_option("--busy-ms", arguments.busy_ms, "It computes for so long at a time")
      ->check(CLI::Range(1u, 10'000u))
      ->capture_default_str();
}

}  // namespace

void add_bench_rma(CLI::App& bench, int& exit_code) {
  auto arguments = std::make_shared<RmaArguments>();
  bench::RmaBench& asked = arguments->bench;
  CLI::App* command = bench.add_subcommand(
      "rma",
      "Puts and gets between kinds of memory: latency, bandwidth, cost of a post, with an idle or a busy target");
  CLI::Option* sizes = command->add_option("--sizes", arguments->sizes, "Sizes, for example 8,64K,1M");
  command->add_option("--min", arguments->min, "Smallest size; powers of two from here")
      ->capture_default_str()
      ->excludes(sizes);
  command->add_option("--max", arguments->max, "Largest size")->capture_default_str()->excludes(sizes);
  add_what(*command, *arguments);
  command->add_option("--window", asked.window, "Transfers under way at once, but for --sync block")
      ->check(CLI::Range(std::size_t{1}, kWindowMax))
      ->capture_default_str();
  command->add_option("--path", arguments->path, "Force the way the bytes go")
      ->check(CLI::IsMember(requestable_paths()))
      ->capture_default_str();
  command->add_option("--iterations", asked.iterations, "Samples per line (default: by size)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{10'000'000}));
  command->add_option("--warmup", asked.warmup, "Not timed ones before them (default: a tenth)")
      ->check(CLI::Range(0L, 10'000'000L));
  command->add_option(
      "--peer", arguments->peers,
      "Measure a rival too: 'ucx' in the same processes and in turns; before brant, in host memory, 'mpi' "
      "for the mpiexec on PATH, or the path of an mpiexec. May be given several times");
  command->add_flag("--check", asked.check, "Look at every byte, in a pass that is not timed");
  command->add_option("--json", asked.json, "Append one JSON object per row to this file");
  command->callback([arguments, &exit_code] { exit_code = run_rma(*arguments); });
}

}  // namespace brant::cli
