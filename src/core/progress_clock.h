#pragma once

#include "brant/base/clock.h"

namespace brant {

/// The time when progress last looked at the clock: costs nothing to ask, and is some milliseconds old at most.
class ProgressClock {
 public:
  [[nodiscard]] TimePoint recently() const noexcept { return recently_; }
  TimePoint look() noexcept { return recently_ = Clock::now(); }

 private:
  TimePoint recently_ = Clock::now();
};

}  // namespace brant
