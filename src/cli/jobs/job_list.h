#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/jobs/page_reader.h"

namespace brant::cli::jobs {

/// The processes of one job on this host.
struct Job {
  std::string id;
  std::string launcher;
  std::string program;
  int size = 1;                        ///< Processes of the job, on all hosts.
  std::vector<ProcessPage> processes;  ///< By rank.

  [[nodiscard]] Counts total() const noexcept;
};

/// What lies in the folders of this user.
struct JobList {
  std::vector<Job> jobs;              ///< By the start of their first process.
  std::vector<std::string> problems;  ///< Files that are no pages, folders that cannot be trusted; in words.
  std::size_t removed = 0;            ///< Pages of processes that were killed, which are gone now.
};

/// Reads every page in `folders` and removes those of processes that are gone. Pages of other pid
/// namespaces are marked: their pids mean nothing here. Bounded by kStatisticsFilesMax files a folder.
JobList list_jobs(const std::vector<std::string>& folders);

/// The job with this id, or with a process or a launcher of this pid; null if there is none. Of several jobs of one
/// launcher the latest.
const Job* find_job(const JobList& list, std::string_view wanted);

}  // namespace brant::cli::jobs
