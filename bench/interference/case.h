#pragma once

#include <array>
#include <cstddef>

namespace brant::bench {

/// What the GPU does while the CPU sends, as the paper names it ("Non-Blocking GPU-CPU Notifications to Enable More
/// GPU-CPU Parallelism", section 4.3).
enum class InterferenceCase {
  ssb,   ///< Nothing: its kernel has written what is sent, and has ended.
  psb,   ///< It writes what is sent again and again.
  pcb,   ///< It writes the bytes behind that.
  p2ab,  ///< The same, 2 MiB further on: on another page.
};

inline constexpr std::array kInterferenceCases = {InterferenceCase::ssb, InterferenceCase::psb, InterferenceCase::pcb,
                                                  InterferenceCase::p2ab};
inline constexpr std::size_t kFurtherOn = std::size_t{2} << 20;

[[nodiscard]] constexpr const char* interference_case_name(InterferenceCase which) noexcept {
  switch (which) {
    case InterferenceCase::ssb: return "ssb";
    case InterferenceCase::psb: return "psb";
    case InterferenceCase::pcb: return "pcb";
    case InterferenceCase::p2ab: return "p2ab";
  }
  return "";
}

/// Where the kernel writes meanwhile, from the beginning of what is sent.
[[nodiscard]] constexpr std::size_t beside_offset(InterferenceCase which, std::size_t bytes) noexcept {
  switch (which) {
    case InterferenceCase::ssb:
    case InterferenceCase::psb: return 0;
    case InterferenceCase::pcb: return bytes;
    case InterferenceCase::p2ab: return bytes + kFurtherOn;
  }
  return 0;
}

}  // namespace brant::bench
