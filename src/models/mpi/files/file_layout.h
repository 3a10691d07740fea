#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "models/mpi/types/datatype.h"
#include "models/mpi/types/walk.h"

namespace brant::mpi {

/// How the bytes of a view lie in a file: those of a filetype, again and again, from a displacement on. What a view has
/// is a stream of bytes without an end; a position is a number of bytes of it. The type is not expanded: to begin
/// anywhere costs a division for each loop and a search in each list.
class FileLayout {
 public:
  FileLayout() noexcept = default;
  /// The type may go. It must fit a file (`unfit`).
  FileLayout(std::int64_t displacement, const Datatype& filetype) noexcept;

  /// Why a type is no filetype, for people; null: it is one. Its bytes must not go backwards.
  [[nodiscard]] static const char* unfit(const Datatype& filetype) noexcept;

  /// There are no bytes in it.
  [[nodiscard]] bool empty() const noexcept { return placed_.empty(); }
  /// All bytes lie together.
  [[nodiscard]] bool in_one_run() const noexcept { return in_one_run_; }
  /// Each byte lies behind the one before, so that none is there twice.
  [[nodiscard]] bool ascends() const noexcept;
  /// How many bytes lie together, on average; 0: there are none.
  [[nodiscard]] std::uint64_t run_bytes() const noexcept;
  /// 63 bits hold the offsets of all bytes up to a position.
  [[nodiscard]] bool reaches(std::uint64_t position) const noexcept;

  /// Where the byte at a position lies in the file.
  [[nodiscard]] std::int64_t offset_of(std::uint64_t position) const;
  /// The position of the first byte that does not lie before an offset of the file.
  [[nodiscard]] std::uint64_t position_at(std::int64_t offset) const noexcept;

  /// Calls `visit(offset, bytes)` for each run of the bytes from `begin` to `end`, in their order.
  template <typename Visit>
  void for_each_run(std::uint64_t begin, std::uint64_t end, Visit&& visit) const {
    if (begin >= end || empty()) return;
    if (in_one_run_) return visit(start() + static_cast<std::int64_t>(begin), end - begin);
    Runs<Visit> runs{visit};
    walk_loop(*placed_.layout, start(), extent_, begin, end, runs);
  }

 private:
  template <typename Visit>
  struct Runs {
    Visit& visit;
    void run(std::int64_t at, std::uint64_t bytes, std::uint16_t /*basic*/) { visit(at, bytes); }
    void loop(std::int64_t at, const Layout& item, std::uint64_t count, std::int64_t stride) {
      for (std::uint64_t i = 0; i < count; ++i) visit(at + static_cast<std::int64_t>(i) * stride, item.bytes);
    }
    void runs(std::int64_t base, const Layout& list, std::size_t first, std::size_t last) {
      std::uint64_t begin = first == 0 ? 0 : list.runs[first - 1].end;
      for (std::size_t i = first; i < last; ++i) {
        visit(base + list.runs[i].offset, list.runs[i].end - begin);
        begin = list.runs[i].end;
      }
    }
  };
  /// Of the first byte.
  [[nodiscard]] std::int64_t start() const noexcept { return displacement_ + placed_.offset; }

  std::int64_t displacement_ = 0;
  std::int64_t extent_ = 0;
  Placed placed_;
  bool in_one_run_ = false;
};

}  // namespace brant::mpi
