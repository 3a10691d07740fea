#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "brant/core/runtime.h"
#include "brant/core/stream.h"
#include "models/halo/kernels.h"
#include "models/halo/layout.h"

namespace brant::halo {

/// Numbers of chunks, from `first` to before `last`: what one kernel copies.
struct Phase {
  Word first = 0;
  Word last = 0;

  [[nodiscard]] bool empty() const noexcept { return first == last; }
};

/// Copies of boxes of cells between memories that are known by numbers, the bases: planned once, and done as often as
/// wanted with the addresses of then; by a kernel for each phase, or by the CPU. Of the worker's thread.
class Copies {
 public:
  // Planned.
  /// A region of cells from one array into another.
  static CopyEnd end_in_field(const FieldStrides& strides, const Box& box, std::size_t base) noexcept;
  /// The same cells packed, from `offset` bytes on.
  static CopyEnd end_packed(const FieldStrides& strides, const Box& box, std::size_t base, std::size_t offset) noexcept;
  void add(const CopyEnd& from, const CopyEnd& to, const Box& box, std::size_t cell_bytes, std::size_t variables);
  /// What goes from one block of this process to another, from field to field.
  void add_within(const Layout& layout, const Link& link);
  /// All that was added since the last phase.
  Phase end_phase() noexcept;

  // By the CPU.
  /// `bases` are addresses that it reaches.
  void run_on_cpu(const Phase& phase, std::span<std::byte* const> bases) const noexcept;

  /// Its units of so many bytes, which divide all rows and places, with the addresses that `bases` give.
  [[nodiscard]] std::vector<CopyUnit> units_of(const Phase& phase, Word unit, std::span<std::byte* const> bases) const;

  // By the device.
  /// Puts the plan there, and loads the kernel. After the last phase. Throws what Runtime::allocate and Kernel do.
  void upload(Runtime& runtime, std::size_t bases);
  [[nodiscard]] bool has_bases(std::span<std::byte* const> bases) const noexcept {
    return std::ranges::equal(bases, bases_);
  }
  /// The addresses from here on. What was launched before has ended.
  Status set_bases(std::span<std::byte* const> bases, Stream& stream) noexcept;
  Status launch(const Phase& phase, Stream& stream) const noexcept;
  /// Writes out all units with the addresses that were set, `turns` times where there are so many of all bases, if they
  /// are few. For kernels that copy often. Waits for the device.
  void list_units(Runtime& runtime, std::size_t turns);
  /// So many units of one turn are written out; 0: none are.
  [[nodiscard]] Word listed() const noexcept { return table_.units == nullptr ? 0 : units_before_.back(); }
  [[nodiscard]] CopyRange range_of(const Phase& phase) const noexcept;
  [[nodiscard]] Word bytes_of(const Phase& phase) const noexcept;
  /// For kernels that copy as they go.
  [[nodiscard]] const CopyTable& table() const noexcept { return table_; }

 private:
  [[nodiscard]] Word bytes_in(const CopyChunk& chunk) const noexcept;
  /// Of a chunk, as it lies in memory; `unit` bytes each.
  void write_units(const CopyChunk& chunk, Word unit, std::span<std::byte* const> bases, CopyUnit* to) const noexcept;

  std::vector<CopyBox> boxes_;
  std::vector<CopyChunk> chunks_;
  Word ended_ = 0;  ///< Chunks of phases that have ended.

  std::optional<CopyKernel> kernel_;
  CopyTable table_;
  Memory on_device_;
  Memory new_bases_;                ///< Pinned, on their way.
  Memory units_;                    ///< On the device.
  std::vector<Word> units_before_;  ///< By chunks, and of all.
  std::vector<std::byte*> bases_;   ///< As the device has them.
};

}  // namespace brant::halo
