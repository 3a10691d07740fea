#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/interference/case.h"
#include "bench/runner/row.h"

namespace brant::bench {

/// What is measured.
enum class Disturbed {
  send,   ///< A send of the CPU, from its post until its source is free.
  sweep,  ///< A sweep of the kernel.
};
/// What goes on meanwhile.
enum class Beside {
  nothing,
  sweeps,  ///< Of the kernel.
  bells,   ///< A ring behind each sweep, and a look at what the CPU rings.
  sends,   ///< Of the CPU, which was told by a bell, and whose own ring the kernel looks for.
};

/// One line of the table: what of one case, for kernels of so many blocks.
struct InterferenceRow {
  Disturbed what = Disturbed::send;
  Beside beside = Beside::nothing;
  InterferenceCase which = InterferenceCase::ssb;
  bool all_blocks = false;  ///< As many as run at once, or as the user said.
  unsigned blocks = 1;
  MemoryKind memory = MemoryKind::pinned;
  std::size_t bytes = 0;
  std::string path;  ///< Of the sends; empty: there are none.
  Summary us;
  double baseline_p50 = 0;  ///< Of the same beside nothing, in the same turns.
  bool check = false;

  /// 1: as long as beside nothing. 0: that was too short for the clock.
  [[nodiscard]] double slowdown() const noexcept { return baseline_p50 > 0 ? us.p50 / baseline_p50 : 0; }
};

std::string interference_header();
std::string interference_line(const InterferenceRow& row);
/// One line of JSON.
std::string to_json(const InterferenceRow& row, const Machine& machine);

}  // namespace brant::bench
