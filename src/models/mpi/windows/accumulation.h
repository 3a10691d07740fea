#pragma once

#include <cstddef>
#include <cstdint>

#include "models/mpi/types/datatype.h"
#include "models/mpi/types/op.h"

namespace brant::mpi {

/// How elements of one predefined type in a window are combined with those of an origin, or swapped.
///
/// Words of 4 and 8 bytes that are aligned change by compare-and-swap of a CPU, whoever does it: their owner, or a
/// process that has them mapped. Elements of other sizes are combined by their owner alone, one after the other. So for
/// every element all agree on one way, and updates are atomic (docs/decisions/0084).
class Accumulation {
 public:
  Accumulation(const Op& op, const Datatype& element) noexcept;

  /// Memory of the host. `in` and `before` have packed elements; `place` has them as C lays them out, and one alone if
  /// they have gaps. `before`: gets what was there, if it is not null. `bytes`: packed.
  void apply(std::byte* place, const std::byte* in, std::byte* before, std::size_t bytes) const noexcept;

  /// Elements at `place` are words that any process may change that has them mapped.
  [[nodiscard]] bool in_words(const void* place) const noexcept {
    return is_word_ && reinterpret_cast<std::uintptr_t>(place) % size_ == 0;
  }
  /// Elements have gaps in or behind them, as MPI_SHORT_INT and MPI_DOUBLE_INT: they are handled one by one.
  [[nodiscard]] bool has_gaps() const noexcept { return has_gaps_; }
  /// Of an element: packed, and from its first byte in memory to the last one.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return memory_bytes_; }

 private:
  template <typename Word>
  void apply_words(std::byte* place, const std::byte* in, std::byte* before, std::size_t count) const noexcept;
  void apply_plain(std::byte* place, const std::byte* in, std::byte* before, std::size_t count) const noexcept;

  const Op& op_;
  const Datatype& element_;
  const std::size_t size_;
  const std::size_t memory_bytes_;
  const bool has_gaps_;
  const bool is_word_;
};

/// Stores `desired` if `expected` is there; `before` gets what was. Of `bytes` each, in the same two ways.
void compare_and_swap(std::byte* place, const std::byte* expected, const std::byte* desired, std::byte* before,
                      std::size_t bytes) noexcept;

}  // namespace brant::mpi
