#pragma once

#include "brant/device/notify.cuh"

/// What the kernels of tests do: one text for the GPU and for the emulated device.
namespace brant::test::steps {

using notify::DeviceBell;
using notify::FanIn;
using notify::KernelControl;
using notify::KernelLife;
using simt::Word;

template <typename Machine>
BRANT_DEVICE_CODE void ring_once(Machine& machine, DeviceBell bell, Word epoch) {
  notify::ring(machine, bell, epoch, notify::Block{});
}

/// Writes a part of a message, and rings for it.
template <typename Machine>
BRANT_DEVICE_CODE void make_part(Machine& machine, DeviceBell bell, Word* words, Word count, Word epoch) {
  Word* const to = machine.reach(words);
  for (Word i = 0; i < count; ++i) to[i] = 1000 * epoch + i;
  notify::ring(machine, bell, epoch, notify::Block{});
}

/// Every block adds each item to its word.
template <typename Machine>
BRANT_DEVICE_CODE void add_items(Machine& machine, const KernelControl& control, Word* sums) {
  Word* const to = machine.reach(sums);
  KernelLife life(machine, control);
  notify::Item item;
  while (life.next(item)) {
    to[machine.block()] += item.words[0];
    life.done();
  }
  life.leave();
}

/// Waits for one bell, and rings another when all blocks have.
template <typename Machine>
BRANT_DEVICE_CODE void pass_on(Machine& machine, const KernelControl& control, DeviceBell from, DeviceBell to,
                               FanIn fan_in) {
  KernelLife life(machine, control);
  for (Word epoch = 1; epoch <= 3; ++epoch) {
    if (notify::wait(machine, control, from, epoch) != notify::Waited::rung) break;
    notify::arrive(machine, to, fan_in, epoch);
  }
  life.leave();
}

/// Looks at nothing that it is told until a word is not 0.
template <typename Machine>
BRANT_DEVICE_CODE void never_listen(Machine& machine, const KernelControl& control, Word* may_end) {
  KernelLife life(machine, control);
  Word* const word = machine.reach(may_end);
  while (machine.load_acquire(word) == 0) machine.pause();
  life.leave();
}

}  // namespace brant::test::steps
