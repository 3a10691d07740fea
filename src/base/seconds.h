#pragma once

#include <chrono>

namespace brant {

/// For what is said to people.
[[nodiscard]] inline double in_seconds(std::chrono::nanoseconds time) noexcept {
  return std::chrono::duration<double>(time).count();
}

}  // namespace brant
