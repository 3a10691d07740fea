#pragma once

#include <atomic>

#include "base/log.h"
#include "base/progress_scope.h"

namespace brant::port {

/// The kernels that stay on a device until the CPU ends them, as whoever launches them counts. A call of the driver
/// that waits for all kernels of the device does not return while there is one. Any thread.
class StayingKernels {
 public:
  void note(int change) noexcept { count_.fetch_add(change, std::memory_order_relaxed); }
  [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

  /// For adapters, in front of such a call: the log says what it will wait for, since the call says nothing. Debug
  /// builds end a process that makes it within progress (`ProgressScope`).
  void expect_none(const char* call) const noexcept {
    ProgressScope::expect_none(call);
    if (!any()) return;
    log::warn(
        "{} waits for all kernels of the device, and one stays there until this process ends it: end that first "
        "(destroy the HaloExchange or the PersistentKernel)",
        call);
  }

 private:
  std::atomic<int> count_ = 0;
};

}  // namespace brant::port
