#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "brant/base/status.h"

namespace brant::cli::jobs {

/// A call of a team as a member has noted it.
struct SeenCall {
  std::uint64_t number = 0;  ///< The first of the team is 1; those of streams are counted apart.
  std::string what;          ///< "allreduce of 8 bytes (f32, sum)"
  std::string algorithm;
  Status status = Status::in_progress;
  std::int64_t begun_ns = 0;  ///< On the steady clock. Of streams: when it was queued.
  std::int64_t ended_ns = 0;
};

/// What one member has published of a team.
struct TeamPage {
  std::uint64_t key = 0;  ///< The same at all members.
  std::string name;
  unsigned members = 0;
  unsigned self = 0;
  int rank = 0;                    ///< Of the process in its job.
  std::vector<SeenCall> calls;     ///< The last ones, the oldest first.
  std::optional<unsigned> awaits;  ///< The member that the call under way was last seen to wait for.
  Status fault = Status::ok;       ///< That the team has ended with.
  std::vector<SeenCall> queued;    ///< The last ones that streams were given.
  /// In which call a kernel was last seen to wait, 0 for none, and for whom. Each launch of a graph counts.
  std::uint64_t kernel_call = 0;
  unsigned kernel_awaits = 0;
};

/// The page in these bytes. Nothing: it is of nobody, of another version, or damaged.
std::optional<TeamPage> parse_team_page(std::span<const std::byte> bytes);

}  // namespace brant::cli::jobs
