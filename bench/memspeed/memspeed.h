#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "brant/brant.h"

namespace brant::bench {

inline constexpr std::size_t kElementBytes = 8;  ///< Of the copy of one element.
inline constexpr std::size_t kShortCopies = 25;  ///< Of one element, for each full copy.
inline constexpr std::size_t kMemoryBytesMin = std::size_t{64} << 10;

/// What the user asked for.
struct Memspeed {
  std::size_t bytes = std::size_t{64} << 20;  ///< Of each memory.
  std::size_t iterations = 8;                 ///< Full copies and passes; one more comes before, not timed.
  GpuChoice device = GpuChoice::automatic;
  bool check = false;  ///< Every byte of a full copy and of an element, in a pass that is not timed.
  bool ucx = false;    ///< Raw UCX between the processes.
  std::string json;
};

/// Throws Error invalid_argument for what cannot be measured, with the cure.
void require_sense(const Memspeed& asked);

/// Bytes a microsecond and 1e3 (1e9 bytes a second) that a copy moves when what any copy costs is left out:
/// bytes / (full - short). Nothing where the full copy did not take longer.
std::optional<double> rate_without_start(std::size_t bytes, double full_us, double short_us) noexcept;

/// Runs it in this process, or between the two of this job, of which rank 0 measures and prints. Throws Error.
void run_memspeed(const Memspeed& asked);

}  // namespace brant::bench
