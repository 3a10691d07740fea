#pragma once

#include <chrono>

namespace jacobi {

using Clock = std::chrono::steady_clock;

inline double microseconds(Clock::time_point from, Clock::time_point to) noexcept {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

}  // namespace jacobi
