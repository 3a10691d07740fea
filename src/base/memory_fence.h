#pragma once

#include <atomic>

namespace brant {

/// std::atomic_thread_fence, and nothing under the thread sanitizer: it does not know fences, and compilers refuse
/// them.
inline void memory_fence([[maybe_unused]] std::memory_order order) noexcept {
#ifndef __SANITIZE_THREAD__
  std::atomic_thread_fence(order);
#endif
}

}  // namespace brant
