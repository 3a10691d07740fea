#pragma once

#include "brant/base/kernel_source.h"
#include "brant/base/simt.h"

namespace brant::simt {

/// The thread of a CPU that does a launch, or of a cooperative one a block, on an emulated device.
inline CpuThread thread_of(const HostLaunch& launch) noexcept {
  return CpuThread(launch.engine_address, static_cast<unsigned>(launch.first_block),
                   static_cast<unsigned>(launch.shape.blocks()));
}

}  // namespace brant::simt
