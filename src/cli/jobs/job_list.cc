#include "cli/jobs/job_list.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/process_stat.h"
#include "base/read_number.h"
#include "core/observe/statistics_folder.h"

namespace brant::cli::jobs {
namespace {

namespace fs = std::filesystem;

Job& job_of(JobList& list, const ProcessPage& page) {
  for (Job& job : list.jobs) {
    if (job.id == page.job_id && job.size == page.size) return job;
  }
  Job& job = list.jobs.emplace_back();
  job.id = page.job_id;
  job.launcher = page.launcher;
  job.program = page.program;
  job.size = page.size;
  return job;
}

bool of_other_namespace(const ProcessMark& owner) {
  const Result<ProcessMark> self = own_process_mark();
  return self && self->pid_namespace != owner.pid_namespace;
}

/// A page of a team, and who wrote it.
struct OwnedTeam {
  ProcessMark owner;
  TeamPage team;
};

void add_page(JobList& list, std::vector<OwnedTeam>& teams, const std::string& file, std::string_view name) {
  if (name.front() == '.') return;  // a draft: it has a name soon, or is a leftover of later
  const std::optional<ProcessMark> owner = owner_of_statistics_file(name);
  if (owner && is_published_pages(name)) {
    for (TeamPage& team : read_team_pages(file)) teams.push_back({*owner, std::move(team)});
    return;
  }
  ProcessPage page = read_page(file);
  if (page.vanished) return;
  if (!owner) page.problem = "it is no statistics page of brant";
  if (page.problem.empty() && page.owner != *owner) page.problem = "it is of another process than its name says";
  if (!page.problem.empty()) {
    list.problems.push_back(fmt::format("{}: {}", file, page.problem));
    return;
  }
  page.other_namespace = of_other_namespace(page.owner);
  Job& job = job_of(list, page);
  job.processes.push_back(std::move(page));
}

/// A process may have several runtimes, each of which is a rank of some job.
void give_out(std::vector<OwnedTeam> teams, JobList& list) {
  for (OwnedTeam& each : teams) {
    for (Job& job : list.jobs) {
      const auto process = std::find_if(job.processes.begin(), job.processes.end(), [&](const ProcessPage& page) {
        return page.owner == each.owner && page.rank == each.team.rank;
      });
      if (process == job.processes.end()) continue;
      process->teams.push_back(std::move(each.team));
      break;
    }
  }
}

void read_folder(JobList& list, const std::string& folder) {
  std::error_code fault;
  if (!fs::exists(fs::symlink_status(folder, fault))) return;
  if (std::string reason = why_untrusted(folder); !reason.empty()) {
    list.problems.push_back(std::move(reason));
    return;
  }
  list.removed += remove_leftovers(folder);
  std::size_t seen = 0;
  std::vector<OwnedTeam> teams;
  for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end; entry.increment(fault)) {
    if (++seen > kStatisticsFilesMax) {
      list.problems.push_back(fmt::format("{}: more than {} files: the rest is not read", folder, kStatisticsFilesMax));
      break;
    }
    add_page(list, teams, entry->path().native(), entry->path().filename().native());
  }
  if (fault) list.problems.push_back(fmt::format("{}: {}", folder, fault.message()));
  give_out(std::move(teams), list);
}

std::int64_t start_of(const Job& job) {
  std::int64_t first = job.processes.front().started_ns;
  for (const ProcessPage& page : job.processes) first = std::min(first, page.started_ns);
  return first;
}

}  // namespace

Counts Job::total() const noexcept {
  Counts sum;
  for (const ProcessPage& page : processes) sum += page.counts;
  return sum;
}

JobList list_jobs(const std::vector<std::string>& folders) {
  JobList list;
  for (const std::string& folder : folders) read_folder(list, folder);
  for (Job& job : list.jobs) {
    std::sort(job.processes.begin(), job.processes.end(), [](const ProcessPage& left, const ProcessPage& right) {
      return std::pair(left.rank, left.started_ns) < std::pair(right.rank, right.started_ns);
    });
  }
  std::stable_sort(list.jobs.begin(), list.jobs.end(),
                   [](const Job& left, const Job& right) { return start_of(left) < start_of(right); });
  return list;
}

namespace {

/// `brant run` has a child of the same command line, its guardian: who names that means the job.
int launcher_behind(int pid) {
  const Result<ProcessStat> stat = read_process_stat(pid);
  return stat && stat->name == "brant-guardian" ? stat->parent : pid;
}

}  // namespace

const Job* find_job(const JobList& list, std::string_view wanted) {
  int pid = 0;
  const bool is_pid = read_number(wanted, pid);
  if (is_pid) pid = launcher_behind(pid);
  const Job* launched = nullptr;
  for (const Job& job : list.jobs) {
    if (job.id == wanted) return &job;
    for (const ProcessPage& page : job.processes) {
      if (is_pid && page.owner.pid == pid) return &job;
      if (is_pid && page.parent_pid == pid && page.launcher != "single") launched = &job;
    }
  }
  return launched;
}

}  // namespace brant::cli::jobs
