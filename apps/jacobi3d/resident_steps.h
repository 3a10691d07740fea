#pragma once

#include "brant/device/notify.cuh"
#include "brant/halo/direct_steps.cuh"
#include "grid.h"

/// What a kernel that stays does: iterations, with the exchange and the sweep of each, and no CPU in between. One text
/// for the GPU and the emulated device, for Machines that can sweep as well:
///
/// sweep        next = average(current) for the cells of a box, by all blocks of the grid together
/// sweep_shell  likewise for all boxes of a shell
namespace jacobi {

using brant::simt::Word;

/// Of one iteration, in nanoseconds, as block 0 saw it.
struct Lap {
  Word exchange;  ///< Until the ghosts of others were there.
  Word all;
};

/// What it works on. Iterations count from 0; those that are even read field 0 and write field 1.
struct Resident {
  brant::halo::DirectPlan halo[2];  ///< Of each field.
  double* field[2] = {};
  Layout layout;
  Box whole;
  Split split;
  Word overlaps = 0;
  Word computes = 1;                   ///< 0: exchanges alone, of one field after the other.
  brant::notify::DeviceBell together;  ///< Of the device: all blocks have come to a place.
  brant::notify::FanIn arrivals;       ///< Of all blocks, however many they are.
  brant::notify::DeviceBell finished;
  Lap* laps = nullptr;  ///< Pinned; of the first `laps_max` iterations of an item.
  Word laps_max = 0;
};

/// The block's share of some chunks. A call and not inlined: what copies cells would take registers from what sweeps.
template <typename Machine>
#ifdef __CUDACC__
__device__ __noinline__
#else
inline
#endif
    void copy_cells(Machine& machine, const brant::halo::CopyTable& table, Word first, Word last) {
  brant::halo::copy_by_squads(machine, table, first, last, {machine.block(), machine.blocks()});
}

/// Each field has exchanges of its own, which count from 1.
BRANT_DEVICE_CODE Word exchange_of(Word iteration) { return iteration / 2 + 1; }

/// Rows that came packed are copied into the ghosts, by other threads than those that read them.
template <typename Machine>
BRANT_DEVICE_CODE bool takes_landed(Machine& machine, const brant::halo::DirectPlan& plan) {
  const brant::halo::DirectNeighbour* const all = brant::halo::neighbours_in(machine, plan);
  for (Word n = 0; n < plan.count; ++n) {
    if (all[n].land_first != all[n].land_last) return true;
  }
  return false;
}

/// All blocks have come here, and see what all have written: places have the numbers 1, 2, 3 and so on. False: some
/// block has not come.
template <typename Machine>
BRANT_DEVICE_CODE bool meet(Machine& machine, const brant::notify::KernelControl& control, const Resident& work,
                            Word place) {
  const brant::notify::Block block;
  const brant::notify::FanIn all_blocks{work.arrivals.counts, machine.blocks()};
  brant::notify::arrive(machine, work.together, all_blocks, place, block);
  return brant::notify::wait(machine, control, work.together, place, block) == brant::notify::Waited::rung;
}

/// The cells that need no ghosts of others, while those come; or all the rest.
template <typename Machine>
BRANT_DEVICE_CODE void sweep_before(Machine& machine, const Resident& work, double* next, const double* current) {
  if (work.computes != 0 && work.overlaps != 0) machine.sweep(next, current, work.layout, work.split.interior);
}
template <typename Machine>
BRANT_DEVICE_CODE void sweep_behind(Machine& machine, const Resident& work, double* next, const double* current) {
  if (work.computes == 0) return;
  if (work.overlaps != 0) {
    machine.sweep_shell(next, current, work.layout, work.split.shell);
  } else {
    machine.sweep(next, current, work.layout, work.whole);
  }
}

/// Iterations from `first` on, by blocks that all run at once. The neighbours ask in the first two, one for each field,
/// whether their cells may come. Then they know: a neighbour writes the ghosts of a field again when it has those of
/// the other field, which this process sends when all its blocks have read those that are overwritten. False: a
/// neighbour has not come.
template <typename Machine>
BRANT_DEVICE_CODE bool iterate(Machine& machine, const brant::notify::KernelControl& control, const Resident& work,
                               Word first, Word times) {
  const Word end = first + times;
  const bool takes = takes_landed(machine, work.halo[0]);
  for (Word i = first; i < end && i < first + 2; ++i)
    brant::halo::tell_ready(machine, work.halo[i % 2], exchange_of(i));
  for (Word i = first; i < end; ++i) {
    const brant::halo::DirectPlan& halo = work.halo[i % 2];
    const double* const current = work.field[i % 2];
    double* const next = work.field[(i + 1) % 2];
    const Word begun = machine.now_ns();
    const auto copy = [&](Word from, Word to) { copy_cells(machine, halo.table, from, to); };
    if (!brant::halo::write_cells(machine, control, halo, exchange_of(i), i < first + 2, copy)) return false;
    sweep_before(machine, work, next, current);
    if (!brant::halo::await_cells(machine, control, halo, exchange_of(i), copy)) return false;
    if (takes && !meet(machine, control, work, 2 * i + 1)) return false;
    const Word exchanged = machine.now_ns();
    sweep_behind(machine, work, next, current);
    if (!meet(machine, control, work, takes ? 2 * i + 2 : i + 1)) return false;
    if (machine.block() == 0 && machine.thread() == 0 && i - first < work.laps_max) {
      machine.reach(work.laps)[i - first] = {exchanged - begun, machine.now_ns() - begun};
    }
  }
  return true;
}

/// Does the iterations of each item: its words are the first one, how many they are, and the number of the item, which
/// the last block rings. A block that has waited in vain goes on to the next item, which does not come: block 0 must be
/// there to tell the others that the kernel is to end.
template <typename Machine>
BRANT_DEVICE_CODE void iterate_as_told(Machine& machine, const brant::notify::KernelControl& control,
                                       const Resident& work) {
  brant::notify::KernelLife<Machine> life(machine, control);
  brant::notify::Item item;
  while (life.next(item)) {
    if (iterate(machine, control, work, item.words[0], item.words[1])) life.done(work.finished, item.words[2]);
  }
  life.leave();
}

}  // namespace jacobi
