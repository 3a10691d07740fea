#pragma once

#include "brant/core/kernel.h"
#include "brant/halo/cell_copy.cuh"
#include "brant/halo/direct_steps.cuh"
#include "brant/halo/triggered_steps.cuh"

namespace brant::halo {

using CopyKernel = Kernel<CopyTable, Word, Word>;
using DirectKernel = Kernel<notify::KernelControl, DirectPlan, Word>;
using CountedKernel = Kernel<notify::KernelControl, DirectPlan, DirectCount>;
using ResidentExchange = Kernel<notify::KernelControl, DirectPlan, notify::DeviceBell>;
using TriggeredKernel = Kernel<notify::KernelControl, TriggeredPlan>;

LaunchShape shape_of(Word blocks, unsigned threads) noexcept;
/// Blocks of so many threads that run at once; at least 1. Throws what the device says.
unsigned blocks_at_once(Device device, port::Kernel* kernel, unsigned threads);
/// Of so many blocks that run at once, those that a kernel that stays has at most: the others are for the program's own
/// kernels.
unsigned staying_share(unsigned at_once) noexcept;
/// Blocks of kStayThreads that together copy so many chunks at a time. Blocks have to agree in each exchange, which
/// takes longer than it takes one of them to copy a few chunks.
unsigned staying_blocks(Word chunks, unsigned at_once) noexcept;
/// Of a kernel of the program. Throws invalid_argument where a fan-in does not count so many.
void require_blocks(unsigned blocks);

/// Throw what Kernel does.
CopyKernel load_copy_kernel(Device device);
DirectKernel load_direct_kernel(Device device);
CountedKernel load_counted_kernel(Device device);
ResidentExchange load_resident_kernel(Device device);
TriggeredKernel load_triggered_kernel(Device device);

}  // namespace brant::halo
