#pragma once

#include "brant/device/notify.cuh"
#include "brant/halo/direct_steps.cuh"
#include "grid.h"

/// What a kernel that stays does: iterations, with the exchange and the sweep of each, and no CPU in between. One text
/// for the GPU and the emulated device, for Machines that can sweep as well:
///
/// sweep        next = average(current) for the cells of a box, by all blocks of the grid together, so many planes at a
///              time
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
  Word planes = kPlanesPerPiece;         ///< That a block of the grid walks along at a time.
  Word computes = 1;                     ///< 0: exchanges alone, of one field after the other.
  brant::notify::MeetingPlace together;  ///< Of all blocks.
  brant::notify::DeviceBell finished;
  Lap* laps = nullptr;  ///< Pinned; of the first `laps_max` iterations of an item.
  Word laps_max = 0;
};

/// The block's share of a range. A call and not inlined: what copies cells would take registers from what sweeps.
template <typename Machine>
#ifdef __CUDACC__
__device__ __noinline__
#else
inline
#endif
    void copy_cells(Machine& machine, const brant::halo::CopyTable& table, const brant::halo::CopyRange& range,
                    brant::halo::Share share) {
  brant::halo::copy_range(machine, table, range, share);
}

/// Each field has exchanges of its own, which count from 1.
BRANT_DEVICE_CODE Word exchange_of(Word iteration) { return iteration / 2 + 1; }

/// Rows that came packed are copied into the ghosts, by other threads than those that read them.
template <typename Machine>
BRANT_DEVICE_CODE bool takes_landed(Machine& machine, const brant::halo::DirectPlan& plan) {
  const brant::halo::DirectNeighbour* const all = brant::halo::neighbours_in(machine, plan);
  for (Word n = 0; n < plan.count; ++n) {
    if (all[n].landed.first != all[n].landed.last) return true;
  }
  return false;
}

/// So many blocks look at the bells of the neighbours themselves. Where there are more the last one does, and opens the
/// doors for the others: many that look keep the words from being written.
inline constexpr unsigned kBlocksThatLook = 16;

/// All blocks see the ghosts of this iteration, those that the block has to bring along included. Then they have met
/// `time` times.
template <typename Machine, typename Take>
BRANT_DEVICE_CODE bool await_ghosts(Machine& machine, const brant::notify::KernelControl& control, const Resident& work,
                                    const brant::halo::DirectPlan& halo, Word epoch, bool takes, Word time,
                                    Take&& take) {
  const bool last = machine.block() + 1 == machine.blocks();
  const bool all_look = machine.blocks() <= kBlocksThatLook;
  if (!brant::halo::await_cells(machine, control, halo, epoch, last || all_look, take)) return false;
  if (work.computes == 0) return true;  // nobody looks at them
  if (takes) return brant::notify::meet(machine, control, work.together, time) == brant::notify::Waited::rung;
  if (all_look) return true;
  if (last && machine.thread() == 0) brant::notify::open_doors(machine, work.together, time);
  return brant::notify::pass(machine, control, work.together, time) == brant::notify::Waited::rung;
}

/// The cells that need no ghosts of others, while those come; or all the rest.
template <typename Machine>
BRANT_DEVICE_CODE void sweep_before(Machine& machine, const Resident& work, double* next, const double* current) {
  if (work.computes != 0 && work.overlaps != 0)
    machine.sweep(next, current, work.layout, work.split.interior, work.planes);
}
template <typename Machine>
BRANT_DEVICE_CODE void sweep_behind(Machine& machine, const Resident& work, double* next, const double* current) {
  if (work.computes == 0) return;
  if (work.overlaps != 0) {
    machine.sweep_shell(next, current, work.layout, work.split.shell);
  } else {
    machine.sweep(next, current, work.layout, work.whole, work.planes);
  }
}

/// Iterations from `first` on, by blocks that all run at once. The neighbours ask in the first two, one for each field,
/// whether their cells may come. Then they know: a neighbour writes the ghosts of a field again when it has those of
/// the other field, which this process sends when all its blocks have read those that are overwritten. False: a
/// neighbour has not come. Where nothing is swept nobody reads the ghosts, and blocks need not meet: each of them
/// writes its part again when it has taken its part of what landed.
template <typename Machine>
BRANT_DEVICE_CODE bool iterate(Machine& machine, const brant::notify::KernelControl& control, const Resident& work,
                               Word first, Word times) {
  const Word end = first + times;
  const bool takes = takes_landed(machine, work.halo[0]);
  constexpr auto kRung = brant::notify::Waited::rung;
  for (Word i = first; i < end && i < first + 2; ++i)
    brant::halo::tell_ready(machine, work.halo[i % 2], exchange_of(i));
  for (Word i = first; i < end; ++i) {
    const brant::halo::DirectPlan& halo = work.halo[i % 2];
    const double* const current = work.field[i % 2];
    double* const next = work.field[(i + 1) % 2];
    const Word begun = machine.now_ns();
    const auto copy = [&](const brant::halo::CopyRange& range, brant::halo::Share share) {
      copy_cells(machine, halo.table, range, share);
    };
    if (!brant::halo::write_cells(machine, control, halo, exchange_of(i), i < first + 2, copy)) return false;
    sweep_before(machine, work, next, current);
    if (!await_ghosts(machine, control, work, halo, exchange_of(i), takes, 2 * i + 1, copy)) return false;
    const Word exchanged = machine.now_ns();
    sweep_behind(machine, work, next, current);
    if (work.computes != 0 && brant::notify::meet(machine, control, work.together, 2 * i + 2) != kRung) return false;
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
