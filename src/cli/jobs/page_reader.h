#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/process_mark.h"
#include "brant/core/path.h"
#include "cli/jobs/team_page.h"

namespace brant::cli::jobs {

/// Messages over one path, as they were at one moment.
struct PathCount {
  std::uint64_t sends = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t receives = 0;
  std::uint64_t bytes_received = 0;

  bool operator==(const PathCount&) const noexcept = default;
  PathCount& operator+=(const PathCount& other) noexcept;
};

/// What a process had done at one moment.
struct Counts {
  std::array<PathCount, kPathCount> paths{};
  std::uint64_t failures = 0;
  std::uint64_t peers_lost = 0;
  std::uint64_t progress_calls = 0;
  std::uint64_t sleeps = 0;
  std::uint64_t bad_records = 0;

  Counts& operator+=(const Counts& other) noexcept;
  /// What went over any path.
  [[nodiscard]] PathCount all_paths() const noexcept;
  /// What came since `before`; a sum from which a process has gone since may have shrunk: that counts as nothing.
  [[nodiscard]] Counts since(const Counts& before) const noexcept;
};

/// A page as it was read.
struct ProcessPage {
  std::string file;
  std::string problem;    ///< Why the rest is not filled in, in words; empty if it is.
  bool vanished = false;  ///< With a problem: the file is gone, as when its process ends meanwhile.
  ProcessMark owner;
  bool other_namespace = false;  ///< The pid is one of another pid namespace: a container's, say.
  int parent_pid = 0;
  int rank = 0;
  int size = 1;
  int local_size = 1;
  std::string job_id;
  std::string launcher;
  std::string program;
  std::int64_t started_ns = 0;  ///< On the steady clock.
  Counts counts;
  std::vector<TeamPage> teams;  ///< That it is a member of.
};

/// The page in these bytes. What is cut short, of another version or no page at all is a problem, never an error.
ProcessPage parse_page(std::span<const std::byte> bytes);

/// Reads one file, with one read: whatever happens to it meanwhile, the reader does not fault.
ProcessPage read_page(const std::string& file);
/// The same of a file of PublishedPages; pages of nobody, and what cannot be read, are left out.
std::vector<TeamPage> read_team_pages(const std::string& file);

}  // namespace brant::cli::jobs
