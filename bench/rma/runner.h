#pragma once

#include <vector>

#include "bench/rma/meeting.h"
#include "bench/rma/player.h"
#include "bench/rma/rows.h"
#include "bench/runner/row.h"

namespace brant::bench {

/// The lines of a benchmark: players take turns, the process that leads prints.
class RmaRunner {
 public:
  /// `device`: the kind of the device's memory. Nothing but `bench` is kept for long: it outlives this.
  RmaRunner(const RmaBench& bench, RmaMeeting& meeting, const Machine& machine, MemoryKind device);

  /// `title`: of who plays.
  void print_title(const std::string& title, const std::vector<RmaPattern>& patterns) const;
  /// Measures the lines of these patterns. Collective. Throws Error.
  void run(const std::vector<RmaPlayer*>& players, const std::vector<RmaPattern>& patterns);

 private:
  struct Turn {
    RmaPlayer* player = nullptr;
    double idle_us = 0;  ///< The median of those that warmed up.
    std::vector<double> samples;
  };

  void run_case(const std::vector<RmaPlayer*>& players, const RmaCase& which);
  void play(Turn& turn, const RmaCase& which, std::size_t count);
  void play_beside_busy_target(Turn& turn, const RmaCase& which, std::size_t count);
  void report(Turn& turn, const RmaCase& which);
  [[nodiscard]] MemoryKind kind_of(RmaMemory memory) const noexcept {
    return memory == RmaMemory::device ? device_ : MemoryKind::host;
  }

  const RmaBench& bench_;
  RmaMeeting& meeting_;
  const Machine machine_;
  const MemoryKind device_;
  RowFile rows_;
};

}  // namespace brant::bench
