#pragma once

#include "bench/notify/steps.h"
#include "brant/device.h"
#include "brant/notify.h"

namespace brant::bench {

/// The kernels of this benchmark, loaded on a device. Throws Error: no image for it.
struct NotifyKernels {
  using Word = simt::Word;
  using Control = notify::KernelControl;
  using DeviceBell = notify::DeviceBell;

  explicit NotifyKernels(Device device);

  Kernel<Control, DeviceBell, DeviceBell, Word, notify_steps::Witness, Word> echo;
  Kernel<Control, DeviceBell, DeviceBell, Word, Word*> cost;
  Kernel<Control, DeviceBell, DeviceBell, Word, Word, Word*> play;
  Kernel<Control, DeviceBell, DeviceBell, void*, const Word*, notify_steps::Play> play_put;
  Kernel<Control, notify::Line*, const notify::Line*, notify_steps::Play> play_lines;
  Kernel<> nothing;
};

}  // namespace brant::bench
