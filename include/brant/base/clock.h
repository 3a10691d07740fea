#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace brant {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

inline constexpr TimePoint kNever = TimePoint::max();

/// `kNever` for a duration too long to add.
inline TimePoint deadline_after(std::chrono::nanoseconds duration) noexcept {
  const TimePoint now = Clock::now();
  return duration > kNever - now ? kNever : now + duration;
}

/// Nanoseconds since whenever, some milliseconds late at most: a quarter of the cost of `Clock::now`.
inline std::int64_t coarse_now() noexcept {
  std::timespec now{};
  static_cast<void>(::clock_gettime(CLOCK_MONOTONIC_COARSE, &now));
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace brant
