#pragma once

#include <algorithm>
#include <chrono>

#include "brant/base/clock.h"

namespace brant {

/// Handlers, network completions, commands of other threads: so many of each in one progress call.
inline constexpr unsigned kDeliverLimit = 256;

/// Says when a batch of calls of user code has taken long enough, however few they were: whoever runs such a batch then
/// lets the network move. The first calls are timed one by one, since a single one may be long; of a row of short ones
/// every eighth is, so that the clock costs each of them a few nanoseconds. Ask only when another call is due: a batch
/// of one costs nothing.
class BatchTime {
 public:
  static constexpr auto kLimit = std::chrono::microseconds(30);

  /// After `done` calls, counted from 1.
  [[nodiscard]] bool over(unsigned done) noexcept {
    if (done < next_look_) return false;
    next_look_ += std::min(next_look_, kClockTurn);
    const TimePoint now = Clock::now();
    if (done == 1) end_ = now + kLimit;
    return now > end_;
  }

 private:
  static constexpr unsigned kClockTurn = 8;  // calls between looks at the clock, once some were short

  unsigned next_look_ = 1;
  TimePoint end_;
};

}  // namespace brant
