#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "brant/base/clock.h"
#include "brant/base/status.h"
#include "cli/commands.h"
#include "cli/info/mpi_text.h"
#include "cli/info/report.h"
#include "cli/jobs/job_report.h"
#include "core/observe/statistics_folder.h"

namespace brant::cli {
namespace {

struct InfoOptions {
  bool json = false;
  bool jobs = false;
  bool mpi = false;
  std::string job;
  double watch_s = 0;  ///< 0: one look.
};

void print(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);  // a watch is read while it runs
}

std::string one_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string many_lines(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void show_machine(const InfoOptions& options) {
  const info::Report report = info::make_report();
  print(options.json ? info::to_json(report) + "\n" : info::to_text(report));
}

void show_jobs(const InfoOptions& options) {
  const jobs::JobList list = jobs::list_jobs(statistics_folders());
  const std::int64_t now = jobs::steady_now_ns();
  print(options.json ? many_lines(jobs::list_json(list, now)) : jobs::list_text(list, now));
}

jobs::Job require_job(const std::string& wanted) {
  const jobs::JobList list = jobs::list_jobs(statistics_folders());
  if (const jobs::Job* job = jobs::find_job(list, wanted)) return *job;
  std::string problems;
  for (const std::string& problem : list.problems) problems += "\n  not read: " + problem;
  throw Error(Status::not_found,
              fmt::format("no running job of this user on this host has the id or a process {}: `brant info --jobs` "
                          "lists them. A job started with BRANT_STATISTICS=off is not seen{}",
                          wanted, problems));
}

/// Until the job has ended.
void watch_job(const InfoOptions& options, jobs::Job before) {
  const auto period = std::chrono::duration<double>(options.watch_s);
  TimePoint then = Clock::now();
  while (true) {
    std::this_thread::sleep_for(period);
    const jobs::JobList list = jobs::list_jobs(statistics_folders());
    const TimePoint now = Clock::now();
    const jobs::Job* after = jobs::find_job(list, before.id);
    if (after == nullptr) return;
    const jobs::JobChange change = jobs::change_of(before, *after, std::chrono::duration<double>(now - then).count());
    print(options.json ? one_line(jobs::rates_json(change)) : "\n" + jobs::rates_text(change));
    before = *after;
    then = now;
  }
}

void show_job(const InfoOptions& options) {
  const jobs::Job job = require_job(options.job);
  const std::int64_t now = jobs::steady_now_ns();
  const bool watch = options.watch_s > 0;
  const nlohmann::ordered_json json = jobs::job_json(job, now);
  print(!options.json ? jobs::job_text(job, now) : watch ? one_line(json) : many_lines(json));
  if (watch) watch_job(options, job);
}

}  // namespace

void add_info(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "info", "What was found on this machine: UCX, GPUs, memory kinds, paths, versions; and what runs on it");
  auto options = std::make_shared<InfoOptions>();
  CLI::Option* json = command->add_flag("--json", options->json, "As one JSON object");
  CLI::Option* jobs =
      command->add_flag("--jobs", options->jobs, "The running processes of this user, and what they have sent");
  command->add_flag("--mpi", options->mpi, "Which functions of MPI are implemented, by chapter, as text")
      ->excludes(jobs)
      ->excludes(json);
  CLI::Option* job =
      command
          ->add_option("--job", options->job,
                       "What a running job has sent and received, per rank and path: its id, or the pid of a rank or "
                       "of its `brant run`")
          ->excludes(jobs);
  command->add_option("--watch", options->watch_s, "Then the rates, every so many seconds until the job ends")
      ->needs(job)
      ->check(CLI::Range(0.05, 86400.0));
  command->callback([options, job, &exit_code] {
    if (options->mpi) {
      print(info::mpi_text());
    } else if (options->jobs) {
      show_jobs(*options);
    } else if (job->count() > 0) {
      show_job(*options);
    } else {
      show_machine(*options);
    }
    exit_code = 0;
  });
}

}  // namespace brant::cli
