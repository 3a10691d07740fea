#pragma once

#include "bench/interference/steps.h"
#include "brant/device.h"
#include "brant/notify.h"

namespace brant::bench {

/// The kernels of this benchmark, loaded on a device. Throws Error: no image for it.
struct InterferenceKernels {
  explicit InterferenceKernels(Device device);

  Kernel<simt::Word*, simt::Word, simt::Word> write;
  Kernel<notify::KernelControl, interference_steps::Scene, notify::FanIn> play;
};

}  // namespace brant::bench
