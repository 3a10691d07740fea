#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/run/job.h"
#include "cli/run/program.h"
#include "port/boot/launcher/frame.h"

namespace brant::cli {
namespace {

constexpr int kMpiRanksMax = 1 << 20;

struct RunArguments {
  run::JobOptions job;
  std::string bind = "none";
  std::vector<std::string> env;
  std::string path;
  int mpi_ranks = 0;
  bool no_prefix = false;
  bool share_gpu = false;
  double patience_s = 1;
  double timeout_s = 0;
};

void add_variable(run::JobOptions& job, const std::string& pair) {
  const std::size_t equals = pair.find('=');
  if (equals == 0 || equals == std::string::npos) {
    throw CLI::ValidationError("--env", fmt::format("'{}' is not of the form NAME=VALUE", pair));
  }
  const std::string name = pair.substr(0, equals);
  for (const char* ours : {"BRANT_BOOT_FD", "BRANT_RANK", "BRANT_SIZE", "BRANT_LOCAL_RANK", "BRANT_LOCAL_SIZE",
                           "BRANT_JOB_ID", "BRANT_MPI_RANKS"}) {
    if (name == ours) throw CLI::ValidationError("--env", fmt::format("{} is set by `brant run` itself", name));
  }
  job.env[name] = pair.substr(equals + 1);
}

/// Several ranks of MPI in each process: the program that loads the other one for each of them comes first.
void share_processes(run::JobOptions& job, int mpi_ranks) {
  if (mpi_ranks == 0) return;
  if (mpi_ranks < job.ranks) {
    throw CLI::ValidationError(
        "--ranks", fmt::format("{} ranks cannot live in {} processes: each has one at least", mpi_ranks, job.ranks));
  }
  job.env["BRANT_MPI_RANKS"] = std::to_string(mpi_ranks);
  job.command.front() = run::find_program(job.command.front());  // brant-ranks looks in PATH alone
  job.command.insert(job.command.begin(), {"brant-ranks", "--"});
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

int run(const RunArguments& arguments) {
  run::JobOptions job = arguments.job;
  job.prefix = !arguments.no_prefix;
  job.bind_cores = arguments.bind == "core";
  job.timeout = milliseconds(arguments.timeout_s);
  job.patience = milliseconds(arguments.patience_s);
  for (const std::string& pair : arguments.env) add_variable(job, pair);
  if (!arguments.path.empty()) job.env["BRANT_PATH"] = arguments.path;
  if (arguments.share_gpu) job.env["BRANT_SHARE_GPU"] = "1";
  try {
    share_processes(job, arguments.mpi_ranks);
    return run::run_job(job);
  } catch (const run::StartError& fault) {
    fmt::print(stderr, "brant run: {}\n", fault.what());
    return fault.exit_code();
  }
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run",
                                         "Start a program as N ranks on this host and stay until all have ended: brant "
                                         "run -n N [OPTIONS] [--] PROGRAM [ARGUMENTS]");
  command->add_option("-n,--processes", arguments->job.ranks, "How many processes")
      ->check(CLI::Range(1, port::launcher::kMaxRanks))
      ->capture_default_str();
  command
      ->add_option(
          "--ranks", arguments->mpi_ranks,
          "How many ranks of an MPI program: as many as fall to a process live in it, as user-level threads, each "
          "with its own copy of the program's variables (docs/mpi.md)")
      ->check(CLI::Range(1, kMpiRanksMax));
  command->add_option("--bind", arguments->bind, "none, or core: rank i on the i-th core this process may use")
      ->check(CLI::IsMember({"none", "core"}))
      ->capture_default_str();
  command->add_flag("--no-prefix", arguments->no_prefix, "Do not start the lines of output with [rank]");
  CLI::Option* keep_going = command->add_flag(
      "--keep-going", arguments->job.keep_going,
      "Do not end the others when one fails (for tests of faults; a chare program ends all the same)");
  command
      ->add_option("--patience", arguments->patience_s,
                   "After the first failure the others have so many seconds to end by themselves, and to write what "
                   "they know; then they get SIGTERM, and SIGKILL 2 s later")
      ->check(CLI::Range(0.0, 1e8))
      ->capture_default_str()
      ->excludes(keep_going);
  command->add_flag("--quiet", arguments->job.quiet,
                    "Do not say which rank ended with which exit code, only what signals killed");
  command->add_option("--timeout", arguments->timeout_s, "End the job after this many seconds, with exit code 124")
      ->check(CLI::Range(0.001, 1e8));
  command->add_option("--env", arguments->env, "NAME=VALUE for the processes; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--path", arguments->path, "Force the path of transfers (sets BRANT_PATH)");
  command->add_flag("--share-gpu", arguments->share_gpu, "Let several ranks use one GPU (sets BRANT_SHARE_GPU=1)");
  command
      ->add_option("program", arguments->job.command,
                   "The program, looked for in PATH and then beside brant, and its arguments")
      ->required();
  // From the program's name on, everything belongs to the program, with or without `--`.
  command->positionals_at_end();
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace brant::cli
