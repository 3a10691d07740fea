#include "cli/jobs/job_report.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

#include "brant/base/clock.h"
#include "brant/core/path.h"
#include "cli/jobs/team_report.h"

namespace brant::cli::jobs {
namespace {

using Json = nlohmann::ordered_json;

/// "1.23 GB"; three digits, since nobody reads more of a number that runs.
std::string bytes_text(double bytes) {
  constexpr std::array<std::string_view, 6> kUnits = {"B", "KB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", bytes, decimals, kUnits[unit]);
}

double uptime_s(const ProcessPage& page, std::int64_t now_ns) {
  return static_cast<double>(std::max<std::int64_t>(0, now_ns - page.started_ns)) / 1e9;
}

/// Of the process that has been there longest.
double uptime_s(const Job& job, std::int64_t now_ns) {
  double longest = 0;
  for (const ProcessPage& page : job.processes) longest = std::max(longest, uptime_s(page, now_ns));
  return longest;
}

std::string time_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string pid_text(const ProcessPage& page) {
  return fmt::format("{}{}", page.owner.pid, page.other_namespace ? "*" : "");
}

/// What the stars mean, if there are any.
std::string footnote(const Job& job) {
  const bool needed = std::any_of(job.processes.begin(), job.processes.end(),
                                  [](const ProcessPage& page) { return page.other_namespace; });
  return needed ? "* of another pid namespace, such as a container: no process here has this pid\n" : "";
}

struct Sums {
  double sends = 0;
  double bytes_sent = 0;
  double receives = 0;
  double bytes_received = 0;
};

Sums sums_of(const PathCount& count, double per) {
  return {static_cast<double>(count.sends) / per, static_cast<double>(count.bytes_sent) / per,
          static_cast<double>(count.receives) / per, static_cast<double>(count.bytes_received) / per};
}

/// The lines of one process, or of the sum: one for each path that something went over.
std::string count_lines(std::string_view who, std::string_view pid, const Counts& counts, double per) {
  std::string text;
  const auto add = [&](std::string_view path, const Sums& sums) {
    const bool first = text.empty();
    text += fmt::format("{:>5} {:>8}  {:<11} {:>13.0f} {:>9} {:>13.0f} {:>9}", first ? who : "", first ? pid : "", path,
                        sums.sends, bytes_text(sums.bytes_sent), sums.receives, bytes_text(sums.bytes_received));
    text += first ? fmt::format(" {:>9}\n", counts.failures) : "\n";
  };
  for (std::size_t path = 0; path < counts.paths.size(); ++path) {
    if (counts.paths[path] != PathCount{}) add(path_name(static_cast<Path>(path)), sums_of(counts.paths[path], per));
  }
  if (text.empty()) add("-", {});
  return text;
}

std::string count_table(const Job& job, double per, std::string_view unit) {
  std::string text = fmt::format("{:>5} {:>8}  {:<11} {:>13} {:>9} {:>13} {:>9} {:>9}\n", "rank", "pid", "path",
                                 fmt::format("sent{}", unit), fmt::format("bytes{}", unit),
                                 fmt::format("received{}", unit), fmt::format("bytes{}", unit), "failures");
  for (const ProcessPage& page : job.processes)
    text += count_lines(std::to_string(page.rank), pid_text(page), page.counts, per);
  if (job.processes.size() > 1) text += count_lines("all", "", job.total(), per);
  return text + footnote(job);
}

std::string troubles(const Job& job) {
  std::string text;
  for (const ProcessPage& page : job.processes) {
    if (page.counts.peers_lost != 0)
      text += fmt::format("rank {} lost {} of its peers\n", page.rank, page.counts.peers_lost);
    if (page.counts.bad_records != 0)
      text += fmt::format("rank {} was sent {} bad record{}: its log names whose\n", page.rank, page.counts.bad_records,
                          page.counts.bad_records == 1 ? "" : "s");
  }
  return text;
}

Json counts_json(const Counts& counts) {
  Json paths = Json::object();
  for (std::size_t path = 0; path < counts.paths.size(); ++path) {
    const PathCount& count = counts.paths[path];
    if (count == PathCount{}) continue;
    paths[std::string(path_name(static_cast<Path>(path)))] = {{"sent", count.sends},
                                                              {"bytes_sent", count.bytes_sent},
                                                              {"received", count.receives},
                                                              {"bytes_received", count.bytes_received}};
  }
  return {{"paths", paths},
          {"failures", counts.failures},
          {"peers_lost", counts.peers_lost},
          {"progress_calls", counts.progress_calls},
          {"sleeps", counts.sleeps},
          {"bad_records", counts.bad_records}};
}

Json rates_of(const Counts& counts, double seconds) {
  Json paths = Json::object();
  for (std::size_t path = 0; path < counts.paths.size(); ++path) {
    if (counts.paths[path] == PathCount{}) continue;
    const Sums sums = sums_of(counts.paths[path], seconds);
    paths[std::string(path_name(static_cast<Path>(path)))] = {{"sent", sums.sends},
                                                              {"bytes_sent", sums.bytes_sent},
                                                              {"received", sums.receives},
                                                              {"bytes_received", sums.bytes_received}};
  }
  return {{"paths", paths}, {"failures", static_cast<double>(counts.failures) / seconds}};
}

}  // namespace

std::int64_t steady_now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

std::string list_text(const JobList& list, std::int64_t now_ns) {
  std::string text;
  if (list.jobs.empty()) {
    text = "no process of brant runs as this user (or they publish nothing: BRANT_STATISTICS=off)\n";
  } else {
    text = fmt::format("{:>8}  {:<7} {:>12} {:>13} {:>9} {:>9}  {:<15} {}\n", "pid", "rank", "up", "sent", "bytes",
                       "failures", "program", "job");
  }
  std::string note;
  for (const Job& job : list.jobs) {
    if (note.empty()) note = footnote(job);
    for (const ProcessPage& page : job.processes) {
      const Sums sums = sums_of(page.counts.all_paths(), 1);
      text += fmt::format("{:>8}  {:<7} {:>12} {:>13.0f} {:>9} {:>9}  {:<15} {}\n", pid_text(page),
                          fmt::format("{}/{}", page.rank, page.size), time_text(uptime_s(page, now_ns)), sums.sends,
                          bytes_text(sums.bytes_sent), page.counts.failures, page.program, job.id);
    }
  }
  text += note;
  for (const std::string& problem : list.problems) text += "not read: " + problem + "\n";
  if (list.removed != 0)
    text += fmt::format("removed what {} killed process{} left\n", list.removed, list.removed == 1 ? "" : "es");
  return text;
}

Json list_json(const JobList& list, std::int64_t now_ns) {
  Json jobs = Json::array();
  for (const Job& job : list.jobs) jobs.push_back(job_json(job, now_ns));
  return {{"jobs", jobs}, {"problems", list.problems}, {"removed", list.removed}};
}

std::string job_text(const Job& job, std::int64_t now_ns) {
  return fmt::format("job {}: {}, {} process{} ({} here), up {}, started by {}\n", job.id, job.program, job.size,
                     job.size == 1 ? "" : "es", job.processes.size(), time_text(uptime_s(job, now_ns)), job.launcher) +
         count_table(job, 1, "") + troubles(job) + teams_text(job, now_ns);
}

Json job_json(const Job& job, std::int64_t now_ns) {
  Json processes = Json::array();
  for (const ProcessPage& page : job.processes) {
    Json process = {{"rank", page.rank},
                    {"pid", page.owner.pid},
                    {"other_pid_namespace", page.other_namespace},
                    {"uptime_s", uptime_s(page, now_ns)}};
    process.update(counts_json(page.counts));
    processes.push_back(process);
  }
  return {{"job", job.id},
          {"program", job.program},
          {"launcher", job.launcher},
          {"size", job.size},
          {"uptime_s", uptime_s(job, now_ns)},
          {"processes", processes},
          {"total", counts_json(job.total())},
          {"teams", teams_json(job, now_ns)}};
}

JobChange change_of(const Job& before, const Job& after, double seconds) {
  JobChange change{after, std::max(seconds, 1e-3)};
  for (ProcessPage& page : change.job.processes) {
    const auto old = std::find_if(before.processes.begin(), before.processes.end(),
                                  [&](const ProcessPage& each) { return each.file == page.file; });
    page.counts = old == before.processes.end() ? Counts{} : page.counts.since(old->counts);
  }
  return change;
}

std::string rates_text(const JobChange& change) {
  return fmt::format("job {}: per second, over {:.1f} s\n", change.job.id, change.seconds) +
         count_table(change.job, change.seconds, "/s");
}

Json rates_json(const JobChange& change) {
  Json processes = Json::array();
  for (const ProcessPage& page : change.job.processes) {
    Json process = {{"rank", page.rank}, {"pid", page.owner.pid}};
    process.update(rates_of(page.counts, change.seconds));
    processes.push_back(process);
  }
  return {{"job", change.job.id},
          {"seconds", change.seconds},
          {"processes", processes},
          {"per_second", rates_of(change.job.total(), change.seconds)}};
}

}  // namespace brant::cli::jobs
