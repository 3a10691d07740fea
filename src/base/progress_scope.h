#pragma once

#include <cstdlib>
#include <utility>

#include "base/log.h"

namespace brant {

/// While one of these lives, its thread moves messages. A call that may wait for all that a device does (freeing its
/// memory, closing what was mapped) is not made meanwhile: a kernel that waits for this very thread would never end.
/// Such calls go to `Deferrals::defer`. Costs nothing in release builds; debug builds end a process that does
/// otherwise.
class ProgressScope {
 public:
#ifdef NDEBUG
  ProgressScope() noexcept {}
  ~ProgressScope() {}
#else
  ProgressScope() noexcept : outer_(std::exchange(inside, true)) {}
  ~ProgressScope() { inside = outer_; }
#endif
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;

  /// For adapters, in front of such a call.
  static void expect_none([[maybe_unused]] const char* call) noexcept {
#ifndef NDEBUG
    if (!inside) return;
    log::error("{} within progress, where it may wait for a kernel that waits for this thread: use Deferrals::defer",
               call);
    std::abort();
#endif
  }

 private:
#ifndef NDEBUG
  static inline thread_local bool inside = false;
  const bool outer_;
#endif
};

}  // namespace brant
