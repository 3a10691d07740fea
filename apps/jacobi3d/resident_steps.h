#pragma once

#include "brant/device/notify.cuh"
#include "brant/halo/direct_steps.cuh"
#include "brant/halo/triggered_steps.cuh"
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

/// What it works on. Iterations count from 0; those that are even read field 0 and write field 1. Its exchanges go by a
/// `Plan` of brant::halo: a DirectPlan, and kernels write into each other's fields; or a MessagePlan, and CPUs send
/// what they have packed.
template <typename Plan>
struct Resident {
  Plan halo[2];  ///< Of each field.
  double* field[2] = {};
  Layout layout;
  Box whole;
  Split split;
  Word planes = 1;  ///< That a block walks along at a time.
  Word overlaps = 0;
  Word computes = 1;                   ///< 0: exchanges alone, of one field after the other.
  brant::notify::DeviceBell together;  ///< Of the device: all blocks have come to a place.
  brant::notify::FanIn arrivals;       ///< Of all blocks, however many they are.
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

/// What brant::halo copies by.
template <typename Machine>
BRANT_DEVICE_CODE auto copies_of(Machine& machine, const brant::halo::CopyTable& table) {
  return [&machine, &table](const brant::halo::CopyRange& range, brant::halo::Share share) {
    copy_cells(machine, table, range, share);
  };
}

/// Each field has exchanges of its own, which count from 1.
BRANT_DEVICE_CODE Word exchange_of(Word iteration) { return iteration / 2 + 1; }

// An exchange, as the two plans have it: begin, send, receive, end. Between send and receive, and between end and the
// next exchange of that field, others may happen.

/// The neighbours ask in the first two exchanges, one for each field, whether their cells may come. Then they know: a
/// neighbour writes the ghosts of a field again when it has those of the other field, which this process sends when all
/// its blocks have read those that are overwritten.
template <typename Machine>
BRANT_DEVICE_CODE void begin(Machine& machine, const brant::halo::DirectPlan& plan, Word epoch) {
  brant::halo::tell_ready(machine, plan, epoch);
}
template <typename Machine>
BRANT_DEVICE_CODE bool send(Machine& machine, const brant::notify::KernelControl& control,
                            const brant::halo::DirectPlan& plan, Word epoch, bool asks) {
  return brant::halo::write_cells(machine, control, plan, epoch, asks, copies_of(machine, plan.table));
}
/// `for_all`: the block is to see all ghosts, and not only to know that it may write again.
template <typename Machine>
BRANT_DEVICE_CODE bool receive(Machine& machine, const brant::notify::KernelControl& control,
                               const brant::halo::DirectPlan& plan, Word epoch, bool for_all) {
  return brant::halo::await_cells(machine, control, plan, epoch, for_all, copies_of(machine, plan.table));
}
/// Rows that came packed are copied into the ghosts, and the next ones may come when all blocks have done so.
template <typename Machine>
BRANT_DEVICE_CODE bool takes_landed(Machine& machine, const brant::halo::DirectPlan& plan) {
  const brant::halo::DirectNeighbour* const all = brant::halo::neighbours_in(machine, plan);
  for (Word n = 0; n < plan.count; ++n) {
    if (!all[n].landed.empty()) return true;
  }
  return false;
}
/// What comes in lines is written into the ghosts as well, by other threads than those that read them.
BRANT_DEVICE_CODE bool takes_lines(const brant::halo::DirectPlan& plan) { return plan.lines.count != 0; }
BRANT_DEVICE_CODE bool takes_lines(const brant::halo::MessagePlan&) { return false; }
/// Blocks that write into the ghosts agree with their neighbours each by itself.
BRANT_DEVICE_CODE bool always_meets(const brant::halo::DirectPlan&) { return false; }
/// Of brant::halo for messages: kernels that write into the ghosts need not.
template <typename Machine>
BRANT_DEVICE_CODE void tell_taken(Machine&, const brant::halo::DirectPlan&, Word) {}
template <typename Machine>
BRANT_DEVICE_CODE bool await_sent(Machine&, const brant::notify::KernelControl&, const brant::halo::DirectPlan&, Word) {
  return true;
}

/// Before the kernel gets the iterations the CPU has posted the receives of the first two exchanges.
template <typename Machine>
BRANT_DEVICE_CODE void begin(Machine&, const brant::halo::MessagePlan&, Word) {}
template <typename Machine>
BRANT_DEVICE_CODE bool send(Machine& machine, const brant::notify::KernelControl&, const brant::halo::MessagePlan& plan,
                            Word epoch, bool) {
  brant::halo::pack_messages(machine, plan.packs, epoch, copies_of(machine, plan.packs.table));
  return true;
}
template <typename Machine>
BRANT_DEVICE_CODE bool receive(Machine& machine, const brant::notify::KernelControl& control,
                               const brant::halo::MessagePlan& plan, Word epoch, bool) {
  return brant::halo::unpack_messages(machine, control, plan.unpacks, epoch, copies_of(machine, plan.unpacks.table));
}
template <typename Machine>
BRANT_DEVICE_CODE bool takes_landed(Machine&, const brant::halo::MessagePlan&) {
  return true;
}
BRANT_DEVICE_CODE bool always_meets(const brant::halo::MessagePlan&) { return true; }

/// All blocks have come here, and see what all have written: places have the numbers 1, 2, 3 and so on. False: some
/// block has not come.
template <typename Machine, typename Plan>
BRANT_DEVICE_CODE bool meet(Machine& machine, const brant::notify::KernelControl& control, const Resident<Plan>& work,
                            Word place) {
  const brant::notify::FanIn all_blocks{work.arrivals.counts, machine.blocks()};
  return brant::notify::meet(machine, control, work.together, all_blocks, place) == brant::notify::Waited::rung;
}

/// The cells that need no ghosts of others, while those come; or all the rest.
template <typename Machine, typename Plan>
BRANT_DEVICE_CODE void sweep_before(Machine& machine, const Resident<Plan>& work, double* next, const double* current) {
  if (work.computes == 0 || work.overlaps == 0) return;
  machine.sweep(next, current, work.layout, work.split.interior, work.planes);
}
template <typename Machine, typename Plan>
BRANT_DEVICE_CODE void sweep_behind(Machine& machine, const Resident<Plan>& work, double* next, const double* current) {
  if (work.computes == 0) return;
  if (work.overlaps != 0) {
    machine.sweep_shell(next, current, work.layout, work.split.shell);
  } else {
    machine.sweep(next, current, work.layout, work.whole, work.planes);
  }
}

/// One iteration of some that begin with `first`. Where messages go through buffers, those of the exchange before this
/// one are free when the next one packs into them: block 0 asks while messages are on their way, and the others know
/// when they have met. Where nothing is swept, and no packed rows are taken, blocks of mode direct need not meet.
template <typename Machine, typename Plan>
BRANT_DEVICE_CODE bool iterate_once(Machine& machine, const brant::notify::KernelControl& control,
                                    const Resident<Plan>& work, Word i, Word first, bool takes) {
  const Plan& halo = work.halo[i % 2];
  const Plan& before = work.halo[(i + 1) % 2];
  const double* const current = work.field[i % 2];
  double* const next = work.field[(i + 1) % 2];
  const bool meets = work.computes != 0 || takes || always_meets(halo);
  const bool meets_twice = meets && (takes || takes_lines(halo));
  const Word begun = machine.now_ns();
  if (!send(machine, control, halo, exchange_of(i), i < first + 2)) return false;
  sweep_before(machine, work, next, current);
  if (i != first) tell_taken(machine, before, exchange_of(i - 1));
  if (!receive(machine, control, halo, exchange_of(i), meets)) return false;
  if (i != first && !await_sent(machine, control, before, exchange_of(i - 1))) return false;
  if (meets_twice && !meet(machine, control, work, 2 * i + 1)) return false;
  const Word exchanged = machine.now_ns();
  sweep_behind(machine, work, next, current);
  if (meets && !meet(machine, control, work, meets_twice ? 2 * i + 2 : i + 1)) return false;
  if (machine.block() == 0 && machine.thread() == 0 && i - first < work.laps_max) {
    machine.reach(work.laps)[i - first] = {exchanged - begun, machine.now_ns() - begun};
  }
  return true;
}

/// Iterations from `first` on, by blocks that all run at once. False: a neighbour has not come.
template <typename Machine, typename Plan>
BRANT_DEVICE_CODE bool iterate(Machine& machine, const brant::notify::KernelControl& control,
                               const Resident<Plan>& work, Word first, Word times) {
  const Word end = first + times;
  const bool takes = takes_landed(machine, work.halo[0]);
  for (Word i = first; i < end && i < first + 2; ++i) begin(machine, work.halo[i % 2], exchange_of(i));
  for (Word i = first; i < end; ++i) {
    if (!iterate_once(machine, control, work, i, first, takes)) return false;
  }
  tell_taken(machine, work.halo[(end + 1) % 2], exchange_of(end - 1));
  return true;
}

/// Does the iterations of each item: its words are the first one, how many they are, and the number of the item, which
/// the last block rings. A block that has waited in vain goes on to the next item, which does not come: block 0 must be
/// there to tell the others that the kernel is to end.
template <typename Machine, typename Plan>
BRANT_DEVICE_CODE void iterate_as_told(Machine& machine, const brant::notify::KernelControl& control,
                                       const Resident<Plan>& work) {
  brant::notify::KernelLife<Machine> life(machine, control);
  brant::notify::Item item;
  while (life.next(item)) {
    if (iterate(machine, control, work, item.words[0], item.words[1])) life.done(work.finished, item.words[2]);
  }
  life.leave();
}

}  // namespace jacobi
