#pragma once

#include <cstddef>

#include "brant/base/shape.h"

namespace brant {

/// How far a list of runs has been walked along: who goes on behind that place begins there, and not with the first
/// run. As long as the list stays the same.
struct RunMark {
  std::size_t run = 0;
  std::size_t before = 0;  ///< Bytes of the runs before it.
};

/// Walks through the runs of a shape, in their order, from any position on. Without a shape: one run that never ends.
class ShapeCursor {
 public:
  /// `position`: so many bytes of the shape come before. Costs a division for each dimension; for an indexed shape a
  /// walk along its runs, from `mark` if that is not behind it; the mark is moved there.
  ShapeCursor(const Shape* shape, std::size_t position, RunMark* mark = nullptr) noexcept;

  /// Where the bytes that come next lie, behind the address that the shape is laid on.
  [[nodiscard]] std::ptrdiff_t offset() const noexcept { return start_ + static_cast<std::ptrdiff_t>(within_); }
  /// So many lie together from there on.
  [[nodiscard]] std::size_t together() const noexcept { return run_ - within_; }
  /// Past `bytes`, which is at most `together`.
  void advance(std::size_t bytes) noexcept {
    within_ += bytes;
    if (within_ == run_) next();
  }

 private:
  void next() noexcept;
  void next_point() noexcept;
  void next_indexed() noexcept;
  void seek_point(std::size_t position) noexcept;
  void seek_indexed(std::size_t position, RunMark* mark) noexcept;

  const Shape* const shape_;
  std::size_t run_ = 0;                      ///< Bytes of the present one.
  std::size_t within_ = 0;                   ///< Of these before the cursor.
  std::ptrdiff_t start_ = 0;                 ///< Of the present one.
  std::size_t index_ = 0;                    ///< Indexed: the present one.
  std::size_t point_[Shape::kDimsMax] = {};  ///< Strided.
};

}  // namespace brant
