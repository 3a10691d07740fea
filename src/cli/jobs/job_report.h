#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/jobs/job_list.h"

namespace brant::cli::jobs {

/// Now, on the clock that pages are dated by.
std::int64_t steady_now_ns() noexcept;

/// A line for every process, problems and removals below; with nobody there, a sentence that says so.
std::string list_text(const JobList& list, std::int64_t now_ns);
nlohmann::ordered_json list_json(const JobList& list, std::int64_t now_ns);

/// Messages and bytes per path, of every rank here and summed.
std::string job_text(const Job& job, std::int64_t now_ns);
nlohmann::ordered_json job_json(const Job& job, std::int64_t now_ns);

/// What changed between two looks at one job.
struct JobChange {
  Job job;             ///< The later look; each process's counts are what came since the earlier one.
  double seconds = 1;  ///< Between the two.
};

/// A process that was not there before counts as unchanged.
JobChange change_of(const Job& before, const Job& after, double seconds);

/// The same per second.
std::string rates_text(const JobChange& change);
nlohmann::ordered_json rates_json(const JobChange& change);

}  // namespace brant::cli::jobs
