#pragma once

#include <chrono>

namespace brant {

/// How far one clock is ahead of another, as exactly as this process can tell: of some looks at both, the one that was
/// interrupted least. The error is half of what that look took, some tens of nanoseconds; a single look is off by
/// milliseconds if the process loses its core between the two clocks.
template <typename Now, typename OtherNow>
std::chrono::nanoseconds clock_offset(Now&& now, OtherNow&& other_now) {
  constexpr int kLooks = 32;
  auto shortest = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds offset{};
  for (int look = 0; look < kLooks; ++look) {
    const std::chrono::nanoseconds before = now();
    const std::chrono::nanoseconds other = other_now();
    const std::chrono::nanoseconds took = now() - before;
    if (took >= shortest) continue;
    shortest = took;
    offset = other - (before + took / 2);
  }
  return offset;
}

}  // namespace brant
