#pragma once

#include <vector>

#include "port/memory/cuda/cuda_driver.h"
#include "port/memory/cuda/nvml.h"
#include "port/memory/gpu_topology.h"

namespace brant::port::memory {

/// The topology as these two libraries tell it. `nvml` that is not usable is a gap, and so is every question that is
/// not answered. Asks and changes nothing; no context.
GpuTopology describe_topology(const std::vector<CudaDeviceSummary>& devices, const CudaDriver& driver,
                              const NvmlState& nvml);

}  // namespace brant::port::memory
