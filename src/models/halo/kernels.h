#pragma once

#include "brant/core/kernel.h"
#include "brant/halo/cell_copy.cuh"
#include "brant/halo/direct_steps.cuh"
#include "models/halo/triggered_steps.h"

namespace brant::halo {

using CopyKernel = Kernel<CopyTable, Word, Word>;
using DirectKernel = Kernel<notify::KernelControl, DirectPlan, Word>;
using CountedKernel = Kernel<notify::KernelControl, DirectPlan, DirectCount>;
using ResidentExchange = Kernel<notify::KernelControl, DirectPlan, notify::DeviceBell>;
using TriggeredKernel = Kernel<notify::KernelControl, TriggeredPlan>;

/// Of the blocks that run at once, one in so many is a kernel's that stays: the others are for the program's own.
inline constexpr unsigned kResidentShare = 8;

/// Throw what Kernel does.
CopyKernel load_copy_kernel(Device device);
DirectKernel load_direct_kernel(Device device);
CountedKernel load_counted_kernel(Device device);
ResidentExchange load_resident_kernel(Device device);
TriggeredKernel load_triggered_kernel(Device device);

}  // namespace brant::halo
