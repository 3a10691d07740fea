#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "brant/base/status.h"
#include "cli/commands.h"
#include "cli/run/job.h"
#include "cli/run/program.h"
#include "port/boot/launcher/spawn_plan.h"

namespace brant::cli {
namespace {

using port::launcher::SpawnPlan;

SpawnPlan read_plan(int fd) {
  const UniqueFd file(fd);
  struct stat info{};
  if (::fstat(fd, &info) != 0) throw run::StartError(1, "there is no plan of what is to be spawned");
  std::vector<std::byte> packed(static_cast<std::size_t>(info.st_size));
  for (std::size_t at = 0; at < packed.size();) {
    const ssize_t got = ::pread(fd, packed.data() + at, packed.size() - at, static_cast<off_t>(at));
    if (got <= 0) throw run::StartError(1, "the plan of what is to be spawned cannot be read");
    at += static_cast<std::size_t>(got);
  }
  return port::launcher::unpack_spawn_plan(packed);
}

std::pair<std::string, std::string> pair_of(const std::string& variable) {
  const std::size_t equals = variable.find('=');
  return {variable.substr(0, equals), equals == std::string::npos ? std::string() : variable.substr(equals + 1)};
}

/// The job has the environment of the program that spawns it.
void take_environment(const SpawnPlan& plan) {
  ::clearenv();
  for (const std::string& variable : plan.environment) {
    const auto [name, value] = pair_of(variable);
    if (!name.empty()) ::setenv(name.c_str(), value.c_str(), 1);
  }
  std::error_code ignored;
  if (!plan.folder.empty()) std::filesystem::current_path(plan.folder, ignored);
}

run::JobOptions options_of(const SpawnPlan& plan) {
  run::JobOptions job;
  job.ranks = 0;
  job.name = plan.name;
  job.port = plan.port;
  for (const SpawnPlan::Part& part : plan.parts) {
    run::JobOptions::Part& run_part = job.parts.emplace_back();
    run_part.ranks = part.processes;
    run_part.command = part.command;
    run_part.folder = part.folder;
    run_part.path = part.path;
    for (const std::string& variable : part.variables) run_part.env.insert(pair_of(variable));
    job.ranks += part.processes;
  }
  return job;
}

int run_spawned(int plan_file, int line, bool detach) {
  // The program that spawns waits for the first process alone, and need not know of the second.
  if (detach && ::fork() != 0) ::_exit(0);
  if (detach) ::setsid();
  ::fcntl(line, F_SETFD, FD_CLOEXEC);  // the line is no rank's: its end is that of the job
  run::Spawner spawner{UniqueFd(line)};
  try {
    const SpawnPlan plan = read_plan(plan_file);
    take_environment(plan);
    run::JobOptions job = options_of(plan);
    job.spawner = &spawner;
    const int code = run::run_job(job);
    spawner.on_readable();
    return spawner.has_met() ? code : 0;  // else the spawner hears of it, as an error of its call
  } catch (const run::StartError& fault) {
    spawner.tell(fmt::format("failed 0 {}\n", fault.what()));  // where it was told more, that came first
    return 0;
  } catch (const brant::Error& fault) {
    spawner.tell(fmt::format("failed 0 {}\n", fault.what()));
    return 0;
  }
}

}  // namespace

void add_run_spawned(CLI::App& app, int& exit_code) {
  struct Arguments {
    int plan = -1;
    int line = -1;
    bool detach = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("run-spawned", "Start what a program spawns")->group("");
  command->add_option("plan", arguments->plan)->required();
  command->add_option("line", arguments->line)->required();
  command->add_flag("--detach", arguments->detach);
  command->callback(
      [arguments, &exit_code] { exit_code = run_spawned(arguments->plan, arguments->line, arguments->detach); });
}

}  // namespace brant::cli
