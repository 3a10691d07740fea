#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/jobs/job_list.h"

namespace brant::cli::jobs {

/// At which call of each team its members on this host are, and who has not come to it; nothing for a job without
/// teams.
std::string teams_text(const Job& job, std::int64_t now_ns);
/// The same with the last calls of each member.
nlohmann::ordered_json teams_json(const Job& job, std::int64_t now_ns);

}  // namespace brant::cli::jobs
