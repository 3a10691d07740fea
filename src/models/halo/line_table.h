#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "brant/core/runtime.h"
#include "brant/halo/line_slots.cuh"
#include "models/halo/copies.h"
#include "models/halo/neighbours.h"

namespace brant::halo {

/// More than that goes as it lies, with bells behind it: half of what lines carry are epochs.
inline constexpr std::size_t kInLinesMax = std::size_t{256} * 1024;
/// Exchanges whose lines lie beside each other in a landing.
inline constexpr std::size_t kLineTurns = 2;

/// Before anybody writes lines there: epochs begin with 1. Waits for the device. Throws what the device says.
void clear_lines(Runtime& runtime, Memory& landing);

/// Where the words of all neighbours that get lines lie, and their lines: made anew for each binding. Of the worker's
/// thread.
class LineTable {
 public:
  /// Forgets what was added.
  void begin() noexcept;
  /// What goes to a neighbour and what comes from it, with the bases of now. Throws invalid_argument: words that do not
  /// lie at multiples of their size.
  void add(const Neighbour& neighbour, const Copies& copies, const Phase& sends, const Phase& takes,
           std::span<std::byte* const> bases);
  /// To the device. Waits for it. Throws what Runtime::allocate and the device say.
  [[nodiscard]] LineSlots upload(Runtime& runtime);

  /// Whether all lines of an exchange have come from a neighbour. Waits for the device.
  [[nodiscard]] static bool have_come(Runtime& runtime, const Neighbour& neighbour, Word epoch);

 private:
  std::vector<CopyUnit> sends_[kLineTurns];
  std::vector<CopyUnit> takes_[kLineTurns];
  Memory on_device_;
};

}  // namespace brant::halo
