#pragma once

#include <algorithm>

#include "ops/mover/move.h"
#include "ops/mover/shape_cursor.h"

namespace brant {

/// Walks through a step of a move by what lies together at both ends.
class CommonRuns {
 public:
  struct Run {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
  };

  CommonRuns(const StepEnd& to, const StepEnd& from, std::size_t bytes) noexcept
      : to_(to.place.memory()),
        from_(from.place.memory()),
        write_(to.shape, to.position, to.mark),
        read_(from.shape, from.position, from.mark),
        left_(bytes) {}

  /// Bytes of the runs to come.
  [[nodiscard]] std::size_t left() const noexcept { return left_; }
  /// While there are any left.
  Run next() noexcept {
    const Run run{to_ + write_.offset(), from_ + read_.offset(),
                  std::min({write_.together(), read_.together(), left_})};
    write_.advance(run.bytes);
    read_.advance(run.bytes);
    left_ -= run.bytes;
    return run;
  }

 private:
  std::byte* const to_;
  const std::byte* const from_;
  ShapeCursor write_;
  ShapeCursor read_;
  std::size_t left_;
};

}  // namespace brant
