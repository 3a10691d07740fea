#pragma once

#include <chrono>

namespace brant::bench {

/// Microseconds from `begin` until now.
[[nodiscard]] inline double us_since(std::chrono::steady_clock::time_point begin) noexcept {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace brant::bench
