#pragma once

#include "base/log.h"
#include "port/memory/staying_kernels.h"

namespace brant::port::memory {

/// For adapters, in front of a load of a kernel: the driver may wait for those that run, and one that waits for the CPU
/// does not end meanwhile. The load says nothing, so the log does.
inline void warn_of_late_load(const StayingKernels& staying, const char* symbol) noexcept {
  if (!staying.any()) return;
  log::warn(
      "kernel '{}' is loaded while another one stays on the device until this process ends it, and the driver may wait "
      "for that: load it before",
      symbol);
}

}  // namespace brant::port::memory
