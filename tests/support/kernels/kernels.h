#pragma once

#include "brant/core/kernel.h"
#include "support/kernels/steps.h"

namespace brant::test {

/// The kernels of tests, loaded on a device. Each is loaded on its own, so that a test pays for what it launches.
using RingKernel = Kernel<notify::DeviceBell, simt::Word>;
using MakePartKernel = Kernel<notify::DeviceBell, simt::Word*, simt::Word, simt::Word>;
using AddItemsKernel = Kernel<notify::KernelControl, simt::Word*>;
using PassOnKernel = Kernel<notify::KernelControl, notify::DeviceBell, notify::DeviceBell, notify::FanIn>;
using NeverListenKernel = Kernel<notify::KernelControl, simt::Word*>;

RingKernel ring_kernel(Device device);
MakePartKernel make_part_kernel(Device device);
AddItemsKernel add_items_kernel(Device device);
PassOnKernel pass_on_kernel(Device device);
NeverListenKernel never_listen_kernel(Device device);

}  // namespace brant::test
