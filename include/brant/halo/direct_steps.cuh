#pragma once

#include "brant/device/notify.cuh"
#include "brant/halo/squads.cuh"

/// What kernels of mode `direct` do: one text for the GPU, the emulated device and the model checker. A program's own
/// kernel that stays may do it as well, between its steps: it gets the plan by `HaloExchange::device`, and calls
/// tell_ready, write_cells and await_cells for the exchanges 1, 2, 3 and so on, with all its blocks.
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
  Word land_first = 0;   ///< Chunks of what it writes packed: from where that lands into the ghosts,
  Word land_last = 0;    ///< likewise.
};

struct DirectPlan {
  CopyTable table;
  const DirectNeighbour* neighbours = nullptr;  ///< In device memory.
  Word count = 0;
  Word own_first = 0;  ///< Chunks that stay in this process.
  Word own_last = 0;
  Word bases_of_turn = 0;  ///< Bases of odd exchanges lie so many words behind those of even ones.
};

template <typename Machine>
BRANT_DEVICE_CODE const DirectNeighbour* neighbours_in(Machine& machine, const DirectPlan& plan) {
  return plan.count == 0 ? nullptr : machine.reach(plan.neighbours);
}

/// Block 0 tells all neighbours that the ghosts may be overwritten, and that what landed is taken.
template <typename Machine>
BRANT_DEVICE_CODE void tell_ready(Machine& machine, const DirectPlan& plan, Word epoch) {
  if (machine.block() != 0) return;
  const DirectNeighbour* const all = neighbours_in(machine, plan);
  for (Word n = machine.thread(); n < plan.count; n += machine.threads()) {
    notify::ring(machine, all[n].tell_ready, epoch, notify::Thread{});
  }
}

/// What all blocks of a grid write in one exchange: none waits for another one. `copy(first, last)`: the block's share
/// of these chunks. `asks`: whether the neighbours are ready. False: one has not come.
template <typename Machine, typename Copy>
BRANT_DEVICE_CODE bool write_cells(Machine& machine, const notify::KernelControl& control, const DirectPlan& plan,
                                   Word epoch, bool asks, Copy&& copy) {
  const notify::Block block;
  const DirectNeighbour* const all = neighbours_in(machine, plan);
  if (asks) copy(plan.own_first, plan.own_last);  // while the neighbours come
  for (Word n = 0; n < plan.count; ++n) {
    const DirectNeighbour& neighbour = all[n];
    if (asks && notify::wait(machine, control, neighbour.ready, epoch, block) != notify::Waited::rung) return false;
    copy(neighbour.first, neighbour.last);
    notify::arrive(machine, neighbour.tell_arrived, neighbour.fan_in, epoch, block);
  }
  if (!asks) copy(plan.own_first, plan.own_last);  // while their cells come
  return true;
}

/// Waits for what the neighbours write; `take(first, last)` takes these chunks of what has landed.
template <typename Machine, typename Take>
BRANT_DEVICE_CODE bool await_cells(Machine& machine, const notify::KernelControl& control, const DirectPlan& plan,
                                   Word epoch, Take&& take) {
  const DirectNeighbour* const all = neighbours_in(machine, plan);
  for (Word n = 0; n < plan.count; ++n) {
    const DirectNeighbour& neighbour = all[n];
    if (notify::wait(machine, control, neighbour.arrived, epoch, notify::Block{}) != notify::Waited::rung) return false;
    take(neighbour.land_first, neighbour.land_last);
  }
  return true;
}

/// One exchange, by all blocks of a grid that need not run at once: the last one alone waits for what comes. What has
/// landed is taken by a kernel behind this one. Epochs are 1, 2, 3 and so on. False: a neighbour has not come.
template <typename Machine>
BRANT_DEVICE_CODE bool exchange_directly(Machine& machine, const notify::KernelControl& control, const DirectPlan& plan,
                                         Word epoch) {
  tell_ready(machine, plan, epoch);
  const auto copy = [&](Word first, Word last) { copy_chunks(machine, plan.table, first, last); };
  if (!write_cells(machine, control, plan, epoch, true, copy)) return false;
  return machine.block() + 1 != machine.blocks() || await_cells(machine, control, plan, epoch, [](Word, Word) {});
}

/// Where a launch that is repeated unchanged finds its epoch.
struct DirectCount {
  Word* words = nullptr;  ///< In device memory: exchanges that were done, and whether one was not. Null: nobody counts.
  notify::FanIn fan_in;   ///< Of all blocks.
};

/// The exchange behind those that were counted. After one that was not done no further one begins.
template <typename Machine>
BRANT_DEVICE_CODE bool exchange_counted(Machine& machine, const notify::KernelControl& control, const DirectPlan& plan,
                                        DirectCount count) {
  Word* const done = machine.reach(count.words);
  Word* const failed = done + 1;
  const Word epoch = machine.load_acquire_device(done) + 1;
  if (machine.sync_block_any(machine.load_relaxed(failed) != 0)) return false;
  if (!exchange_directly(machine, control, plan, epoch)) {
    machine.store_relaxed(failed, 1);
    return false;
  }
  // The last block: all have read the count.
  const auto note = [&](Word all_done) { machine.store_release_device(done, all_done); };
  notify::arrive_and(machine, count.fan_in, epoch, note, notify::Block{});
  return true;
}

/// Some exchanges after each other, from an epoch on, by blocks that all run at once; before the first one all of them
/// have done those before. Between them nobody looks at the ghosts, and there are two landings: so a neighbour is ready
/// for one when it has written its cells for that before, which is behind its taking of what landed before those.
template <typename Machine>
BRANT_DEVICE_CODE bool exchange_in_turn(Machine& machine, const notify::KernelControl& control, const DirectPlan& plan,
                                        Word first, Word times) {
  tell_ready(machine, plan, first);
  CopyTable table = plan.table;
  const auto copy = [&](Word begin, Word end) {
    copy_by_squads(machine, table, begin, end, {machine.block(), machine.blocks()});
  };
  for (Word epoch = first; epoch != first + times; ++epoch) {
    table.bases = plan.table.bases + epoch % 2 * plan.bases_of_turn;
    if (!write_cells(machine, control, plan, epoch, epoch == first, copy)) return false;
    if (!await_cells(machine, control, plan, epoch, copy)) return false;
  }
  return true;
}

/// A kernel that stays, and does the exchanges of each item: its words are the first epoch, how many they are, and the
/// number of the item, which the last block rings. A block that has waited in vain goes on to the next item, which does
/// not come: block 0 must be there to tell the others that the kernel is to end.
template <typename Machine>
BRANT_DEVICE_CODE void exchange_as_told(Machine& machine, const notify::KernelControl& control, const DirectPlan& plan,
                                        const notify::DeviceBell& finished) {
  notify::KernelLife<Machine> life(machine, control);
  notify::Item item;
  while (life.next(item)) {
    if (exchange_in_turn(machine, control, plan, item.words[0], item.words[1])) life.done(finished, item.words[2]);
  }
  life.leave();
}

}  // namespace brant::halo
