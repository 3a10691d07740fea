#pragma once

#include "bench/kernel_puts/steps.h"
#include "brant/device.h"
#include "brant/notify.h"

namespace brant::bench {

/// The kernels of this benchmark, loaded on a device. Throws Error: no image for it.
struct PuttingKernels {
  using Control = notify::KernelControl;
  using Play = kernel_steps::Play;

  explicit PuttingKernels(Device device);

  Kernel<Control, Play> put_notify;
  Kernel<Control, Play> put_lines;
  Kernel<Control, Play, simt::Word> stream_puts;
  Kernel<Control, Play> get;
  Kernel<Control, Play, simt::Word> fetch_add;
  Kernel<Control, Play> barrier;
};

}  // namespace brant::bench
