#pragma once

#include <chrono>

namespace brant {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

inline constexpr TimePoint kNever = TimePoint::max();

/// `kNever` for a duration too long to add.
inline TimePoint deadline_after(std::chrono::nanoseconds duration) noexcept {
  const TimePoint now = Clock::now();
  return duration > kNever - now ? kNever : now + duration;
}

}  // namespace brant
