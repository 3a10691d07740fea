#include "models/mpi/dynamic/spawning.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/env.h"
#include "base/host_name.h"
#include "base/read_number.h"
#include "models/mpi/call_error.h"
#include "models/mpi/process.h"
#include "port/boot/launcher/frame.h"

namespace brant::mpi {

namespace {

using port::launcher::SpawnPlan;

std::string info_value(const SpawnCommand& command, std::string_view key) {
  if (command.info == nullptr) return {};
  const auto found = std::ranges::find(command.info->entries, key, &Info::Entry::first);
  return found != command.info->entries.end() ? found->second : std::string();
}

/// Takes off the part in front of a separator, which goes.
std::string_view cut_off(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return part;
}

int soft_number(std::string_view text, const std::string& soft) {
  int value = 0;
  require(read_number(text, value), MPI_ERR_INFO_VALUE,
          "the value of soft is '{}': it must be numbers and ranges, such as '1,4:16:4'", soft);
  return value;
}

/// Processes are started on this host alone.
void require_this_host(const std::string& host) {
  const std::string own = host_name();
  const bool here = host.empty() || host == "localhost" || host == own || host == own.substr(0, own.find('.'));
  require(here, MPI_ERR_SPAWN, "processes are spawned on the host of the root alone, {}, and not on '{}'", own, host);
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view line = cut_off(text, '\n');
    if (line.empty()) continue;
    require(line.find('=') != std::string_view::npos && line.front() != '=', MPI_ERR_INFO_VALUE,
            "a line of the value of env is '{}': it must be NAME=VALUE", line);
    lines.emplace_back(line);
  }
  return lines;
}

SpawnPlan::Part make_part(const SpawnCommand& command) {
  require(command.program != nullptr && *command.program != 0, MPI_ERR_ARG, "the command is null or empty");
  require(command.processes >= 0, MPI_ERR_ARG, "{} processes of '{}' are to be spawned", command.processes,
          command.program);
  require_this_host(info_value(command, "host"));
  SpawnPlan::Part part;
  part.command = {command.program};
  for (char** argument = command.arguments; argument != nullptr && *argument != nullptr; ++argument)
    part.command.emplace_back(*argument);
  const std::string soft = info_value(command, "soft");
  part.processes = soft.empty() ? command.processes : count_allowed(soft, command.processes);
  part.folder = info_value(command, "wdir");
  part.path = info_value(command, "path");
  part.variables = lines_of(info_value(command, "env"));
  return part;
}

}  // namespace

int count_allowed(const std::string& soft, int most) {
  int best = -1;
  std::string_view rest = soft;
  while (!rest.empty()) {
    std::string_view range = cut_off(rest, ',');
    const int first = soft_number(cut_off(range, ':'), soft);
    const int last = range.empty() ? first : soft_number(cut_off(range, ':'), soft);
    const int step = range.empty() ? 1 : soft_number(range, soft);
    require(step > 0, MPI_ERR_INFO_VALUE, "the value of soft is '{}': its steps must be positive", soft);
    if (first > std::min(last, most)) continue;
    best = std::max(best, first + (std::min(last, most) - first) / step * step);
  }
  require(best > 0, MPI_ERR_SPAWN, "the value of soft, '{}', allows no number of processes from 1 to {}", soft, most);
  return best;
}

SpawnPlan make_plan(const std::vector<SpawnCommand>& commands, std::string port, int own_rank) {
  SpawnPlan plan;
  plan.name = fmt::format("{}{}.", env("BRANT_SPAWN_NAME"), own_rank);
  plan.port = std::move(port);
  std::error_code ignored;
  plan.folder = std::filesystem::current_path(ignored).string();
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) plan.environment.emplace_back(*each);
  std::int64_t all = 0;
  for (const SpawnCommand& command : commands) {
    plan.parts.push_back(make_part(command));
    all += plan.parts.back().processes;
  }
  require(all > 0 && all <= port::launcher::kMaxRanks, MPI_ERR_SPAWN, "{} processes cannot be spawned: 1 to {} can",
          all, port::launcher::kMaxRanks);
  // Commands without processes keep their numbers for the others.
  return plan;
}

std::string port_of_parents() {
  std::string_view parent = env("BRANT_MPI_PARENT");
  const std::string_view job = cut_off(parent, ';');
  // What a spawned program starts by itself has the variable too, and is no process of that job.
  return job == process()->engine().job().job_id ? std::string(parent) : std::string();
}

int own_command() { return port_of_parents().empty() ? 0 : static_cast<int>(env_int("BRANT_MPI_APPNUM").value_or(0)); }

}  // namespace brant::mpi
