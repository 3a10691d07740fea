#pragma once

#include <cstddef>

#include "port/memory/devices.h"

namespace brant::port::memory {

/// What the choice of a GPU depends on besides the request.
struct GpuScene {
  std::size_t gpus = 0;   ///< Seen by this process; at least one.
  bool assigned = false;  ///< CUDA_VISIBLE_DEVICES names exactly one GPU: somebody gave this process its own.
};

/// The ordinal this process takes. Pure, so that it can be tested without a GPU. Throws Error with what to change.
int choose_gpu(const DeviceRequest& request, const GpuScene& scene);

}  // namespace brant::port::memory
