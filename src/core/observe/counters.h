#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "brant/base/status.h"
#include "brant/core/path.h"

namespace brant {

/// A number that one thread writes and anybody may read at any time, other processes too. Adding is a plain load, add
/// and store: no locked instruction.
class Tally {
 public:
  void add(std::uint64_t count = 1) noexcept { set(read() + count); }
  [[nodiscard]] std::uint64_t read() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }

  std::atomic<std::uint64_t> value_{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(Tally) == sizeof(std::uint64_t),
              "tallies lie in memory that other processes read");

/// Messages and their bytes over one path.
struct PathTally {
  Tally sends;
  Tally bytes_sent;
  Tally receives;  ///< What the receiver's CPU is told of: nothing on the path `kernel`.
  Tally bytes_received;
};

/// What a process has done so far. Only the worker's thread writes. Part of StatisticsPage: whoever changes it changes
/// the version there.
struct Counters {
  std::array<PathTally, kPathCount> paths;
  Tally failures;  ///< Operations and messages that ended with an error; those that were cancelled are none.
  Tally peers_lost;
  Tally progress_calls;
  Tally sleeps;
  Tally bad_records;  ///< Records of peers that no process of this job writes.

  /// Of an operation or a message. Back-pressure and what was cancelled are no failures.
  void count_outcome(Status status) noexcept {
    if (status == Status::ok || status == Status::canceled || status == Status::limit_reached) return;
    failures.add();
  }
  [[nodiscard]] PathTally& path(Path which) noexcept { return paths[static_cast<std::size_t>(which)]; }
  [[nodiscard]] const PathTally& path(Path which) const noexcept { return paths[static_cast<std::size_t>(which)]; }
};

}  // namespace brant
