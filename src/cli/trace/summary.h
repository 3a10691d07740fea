#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace brant::cli::trace {

/// What one rank did over the time of the trace, in microseconds.
struct RankSummary {
  int rank = 0;
  double span_us = 0;     ///< From its first event to the end of its last.
  double entries_us = 0;  ///< In entry methods.
  double idle_us = 0;
  std::uint64_t entries = 0;
  std::uint64_t dropped = 0;  ///< Events that the trace did not keep.
};

struct EntrySummary {
  std::string name;  ///< "Block::halo".
  std::uint64_t count = 0;
  double total_us = 0;
  double longest_us = 0;
};

/// What went one way over one path: a message has a line at each of its ends.
struct PathSummary {
  std::string path;
  std::string what;  ///< "channel sends", "channel receives", "puts", "gets", "chare messages sent".
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

struct Summary {
  std::vector<RankSummary> ranks;     ///< By number.
  std::vector<EntrySummary> entries;  ///< Heaviest first.
  std::vector<PathSummary> paths;     ///< By name and what went. `auto`: within a process.
};

/// Reads what BRANT_TRACE wrote, also where the end is missing. Throws Error: not_found, invalid_argument (no trace).
Summary summarize_trace(const std::string& file);

/// Tables for people; at most `entries_max` entries.
std::string to_text(const Summary& summary, std::size_t entries_max);

}  // namespace brant::cli::trace
