#pragma once

#include "brant/device/notify.cuh"
#include "models/halo/cell_copy.h"

/// What kernels of mode `direct` do: one text for the GPU, the emulated device and the model checker.
namespace brant::halo {

/// A process with blocks beside those of this one.
struct DirectNeighbour {
  notify::DeviceBell tell_ready;    ///< There: the ghosts of this process may be overwritten.
  notify::DeviceBell tell_arrived;  ///< There: its ghosts are written.
  notify::DeviceBell ready;         ///< Here, and rung by it: likewise.
  notify::DeviceBell arrived;
  notify::FanIn fan_in;  ///< Of all blocks of the grid.
  Word first = 0;        ///< Chunks of the cells that it gets,
  Word last = 0;         ///< up to before this one.
};

struct DirectPlan {
  CopyTable table;
  const DirectNeighbour* neighbours = nullptr;  ///< In device memory.
  Word count = 0;
  Word own_first = 0;  ///< Chunks that stay in this process.
  Word own_last = 0;
};

/// One exchange, by all blocks of a grid: epochs 1, 2, 3 and so on. False: a neighbour has not come, and the block is
/// to end. `last_waits`: no block waits for another one of its grid, so they need not run at once; the last one waits
/// for what comes. Else all of them wait for it, run at once, and go on with the next exchange: none is then more than
/// two ahead of another one.
template <typename Machine>
BRANT_DEVICE_CODE bool exchange_directly(Machine& machine, const notify::KernelControl& control, const DirectPlan& plan,
                                         Word epoch, bool last_waits) {
  const DirectNeighbour* const all = plan.count == 0 ? nullptr : machine.reach(plan.neighbours);
  if (machine.block() == 0) {
    for (Word n = machine.thread(); n < plan.count; n += machine.threads()) {
      notify::ring(machine, all[n].tell_ready, epoch, notify::Thread{});
    }
  }
  copy_chunks(machine, plan.table, plan.own_first, plan.own_last);  // while the neighbours come
  for (Word n = 0; n < plan.count; ++n) {
    const DirectNeighbour& neighbour = all[n];
    if (notify::wait(machine, control, neighbour.ready, epoch, notify::Block{}) != notify::Waited::rung) return false;
    copy_chunks(machine, plan.table, neighbour.first, neighbour.last);
    notify::arrive(machine, neighbour.tell_arrived, neighbour.fan_in, epoch, notify::Block{});
  }
  if (last_waits && machine.block() + 1 != machine.blocks()) return true;
  for (Word n = 0; n < plan.count; ++n) {
    if (notify::wait(machine, control, all[n].arrived, epoch, notify::Block{}) != notify::Waited::rung) return false;
  }
  return true;
}

/// Some exchanges after each other, from an epoch on.
template <typename Machine>
BRANT_DEVICE_CODE bool exchange_in_turn(Machine& machine, const notify::KernelControl& control, const DirectPlan& plan,
                                        Word first, Word times) {
  for (Word i = 0; i < times; ++i) {
    if (!exchange_directly(machine, control, plan, first + i, false)) return false;
  }
  return true;
}

/// A kernel that stays, and does the exchanges of each item: its words are the first epoch, how many they are, and the
/// number of the item, which the last block rings. A
/// block that has waited in vain goes on to the next item, which does not come: block 0 must be there to tell the
/// others that the kernel is to end.
template <typename Machine>
BRANT_DEVICE_CODE void exchange_as_told(Machine& machine, const notify::KernelControl& control, const DirectPlan& plan,
                                        const notify::DeviceBell& finished, const notify::FanIn& fan_in) {
  notify::KernelLife<Machine> life(machine, control);
  notify::Item item;
  while (life.next(item)) {
    if (!exchange_in_turn(machine, control, plan, item.words[0], item.words[1])) continue;
    notify::arrive(machine, finished, fan_in, item.words[2], notify::Block{});
    life.done();
  }
  life.leave();
}

}  // namespace brant::halo
