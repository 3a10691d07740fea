#pragma once

#include "brant/device/notify.cuh"
#include "brant/halo/line_slots.cuh"
#include "brant/halo/squads.cuh"

/// What kernels of mode `direct` do: one text for the GPU, the emulated device and the model checker. A program's own
/// kernel that stays may do it as well, between its steps: it gets the plan by `HaloExchange::device`, and calls
/// tell_ready, write_cells and await_cells for the exchanges 1, 2, 3 and so on, with all its blocks.
namespace brant::halo {

/// A process with blocks beside those of this one. What goes there is cut into strips, by how many bytes it is: a block
/// copies one, and rings a part of the bell when its cells are there. It takes a part of what has landed as well. So no
/// block waits for another one, and each ring tells of its own block alone: that its strips are written, and that what
/// it took of the exchanges before is taken. Too much for strips is copied by all blocks, and the last of them rings.
struct DirectNeighbour {
  notify::DeviceBell tell_ready;    ///< There: the ghosts of this process may be overwritten.
  notify::DeviceBell tell_arrived;  ///< There: its ghosts are written.
  notify::DeviceBell ready;         ///< Here, and rung by it: likewise.
  notify::DeviceBell arrived;
  notify::FanIn fan_in;  ///< Of all blocks of the grid.
  CopyRange cells;       ///< That it gets.
  CopyRange landed;      ///< What it writes packed: from where that lands into the ghosts.
  Word strips = 0;       ///< 0: all blocks copy all of it together.
  Word first_block = 0;  ///< Has strip 0; the blocks behind it have the others.
  Word arrives_in = 1;   ///< So many parts does it ring.
};

struct DirectPlan {
  CopyTable table;
  const DirectNeighbour* neighbours = nullptr;  ///< In device memory.
  Word count = 0;
  CopyRange own;           ///< What stays in this process.
  Word bases_of_turn = 0;  ///< Bases of odd exchanges lie so many words behind those of even ones,
  Word units_of_turn = 0;  ///< and units so many.
  LineSlots lines;         ///< With neighbours that are not among the others: little for each, by kernels that stay.
};

/// What copies of an exchange go by: those of a plan with two turns differ.
BRANT_DEVICE_CODE CopyTable table_of(const DirectPlan& plan, Word epoch) {
  CopyTable table = plan.table;
  table.bases += epoch % 2 * plan.bases_of_turn;
  table.units += epoch % 2 * plan.units_of_turn;
  return table;
}

template <typename Machine>
BRANT_DEVICE_CODE const DirectNeighbour* neighbours_in(Machine& machine, const DirectPlan& plan) {
  return plan.count == 0 ? nullptr : machine.reach(plan.neighbours);
}

/// The first strip of the block to a neighbour; the others come as many behind each other as there are blocks.
template <typename Machine>
BRANT_DEVICE_CODE unsigned first_strip(Machine& machine, const DirectNeighbour& neighbour) {
  const auto first = static_cast<unsigned>(neighbour.first_block);
  return machine.block() >= first ? machine.block() - first : machine.block() + machine.blocks() - first;
}

/// The block does `each(strip)` for its strips to a neighbour.
template <typename Machine, typename Each>
BRANT_DEVICE_CODE void each_strip(Machine& machine, const DirectNeighbour& neighbour, Each&& each) {
  for (unsigned strip = first_strip(machine, neighbour); strip < neighbour.strips; strip += machine.blocks())
    each(strip);
}

template <typename Machine>
BRANT_DEVICE_CODE bool writes_to(Machine& machine, const DirectNeighbour& neighbour) {
  return neighbour.strips == 0 || first_strip(machine, neighbour) < neighbour.strips;
}

/// Block 0 tells all neighbours that the ghosts may be overwritten, and that what landed is taken: all blocks have read
/// and taken them, and have met since.
template <typename Machine>
BRANT_DEVICE_CODE void tell_ready(Machine& machine, const DirectPlan& plan, Word epoch) {
  if (machine.block() != 0) return;
  const DirectNeighbour* const all = neighbours_in(machine, plan);
  for (Word n = machine.thread(); n < plan.count; n += machine.threads()) {
    notify::ring(machine, all[n].tell_ready, epoch, notify::Thread{});
  }
}

/// What the block writes for one neighbour. False: it is not ready, and was asked.
template <typename Machine, typename Copy>
BRANT_DEVICE_CODE bool write_to(Machine& machine, const notify::KernelControl& control,
                                const DirectNeighbour& neighbour, Word epoch, bool asks, Copy&& copy) {
  const notify::Block block;
  const auto ready = [&] {
    return !asks || notify::wait(machine, control, neighbour.ready, epoch, block) == notify::Waited::rung;
  };
  if (neighbour.strips == 0) {
    if (!ready()) return false;
    copy(neighbour.cells, {machine.block(), machine.blocks()});
    notify::arrive(machine, neighbour.tell_arrived, neighbour.fan_in, epoch, block);
    return true;
  }
  if (!writes_to(machine, neighbour)) return true;
  if (!ready()) return false;
  each_strip(machine, neighbour, [&](unsigned strip) {
    copy(part_of(neighbour.cells, {strip, static_cast<unsigned>(neighbour.strips)}), Share{});
  });
  if (notify::Block::gather(machine)) {
    machine.fence_system();  // one for all, which costs as much as a release
    each_strip(machine, neighbour, [&](unsigned strip) {
      notify::ring_relaxed(machine, notify::part_of(neighbour.tell_arrived, strip), epoch);
    });
  }
  return true;
}

/// What all blocks of a grid write in one exchange: none waits for another one. What goes in lines is sent first.
/// `copy(range, share)`: the block's share of a range. `asks`: whether the neighbours are ready; who does not ask knows
/// it from what they have written since, and all blocks have met behind the last look at what those will write next.
/// False: one has not come.
template <typename Machine, typename Copy>
BRANT_DEVICE_CODE bool write_cells(Machine& machine, const notify::KernelControl& control, const DirectPlan& plan,
                                   Word epoch, bool asks, Copy&& copy) {
  const Share all_blocks{machine.block(), machine.blocks()};
  const DirectNeighbour* const all = neighbours_in(machine, plan);
  send_in_lines(machine, plan.lines, epoch);
  if (asks) copy(plan.own, all_blocks);  // while the neighbours come
  for (Word n = 0; n < plan.count; ++n) {
    if (!write_to(machine, control, all[n], epoch, asks, copy)) return false;
  }
  if (!asks) copy(plan.own, all_blocks);  // while their cells come
  return true;
}

/// What has landed from a neighbour and is the block's to take.
template <typename Machine, typename Take>
BRANT_DEVICE_CODE void take_from(Machine& machine, const DirectNeighbour& neighbour, Take&& take) {
  if (neighbour.landed.empty()) return;
  if (neighbour.strips == 0) {
    take(neighbour.landed, {machine.block(), machine.blocks()});
    return;
  }
  each_strip(machine, neighbour, [&](unsigned strip) {  // the block that sends there next
    take(part_of(neighbour.landed, {strip, static_cast<unsigned>(neighbour.strips)}), Share{});
  });
}

/// Waits for what the neighbours write, those that the block writes for; `waits_for_all`: for that of all of them.
/// `take(range, share)` takes the block's share of what has landed. What comes in lines each thread takes by itself.
template <typename Machine, typename Take>
BRANT_DEVICE_CODE bool await_cells(Machine& machine, const notify::KernelControl& control, const DirectPlan& plan,
                                   Word epoch, bool waits_for_all, Take&& take) {
  const DirectNeighbour* const all = neighbours_in(machine, plan);
  for (Word n = 0; n < plan.count; ++n) {
    const DirectNeighbour& neighbour = all[n];
    if (!waits_for_all && !writes_to(machine, neighbour)) continue;
    const notify::Waited waited =
        notify::wait_for_parts(machine, control, neighbour.arrived, neighbour.arrives_in, epoch, notify::Block{});
    if (waited != notify::Waited::rung) return false;
    take_from(machine, neighbour, take);
  }
  return take_in_lines(machine, control, plan.lines, epoch);
}

/// One exchange, by all blocks of a grid that need not run at once: the last one alone waits for what comes. What has
/// landed is taken by a kernel behind this one. Epochs are 1, 2, 3 and so on. False: a neighbour has not come.
template <typename Machine>
BRANT_DEVICE_CODE bool exchange_directly(Machine& machine, const notify::KernelControl& control, const DirectPlan& plan,
                                         Word epoch) {
  tell_ready(machine, plan, epoch);
  const auto copy = [&](const CopyRange& range, Share share) {
    if (range.listed != 0) {
      copy_listed(machine, plan.table, range.first, range.last, share);
    } else {
      copy_chunks(machine, plan.table, range.first, range.last, share);
    }
  };
  if (!write_cells(machine, control, plan, epoch, true, copy)) return false;
  const auto leave = [](const CopyRange&, Share) {};
  return machine.block() + 1 != machine.blocks() || await_cells(machine, control, plan, epoch, true, leave);
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
  for (Word epoch = first; epoch != first + times; ++epoch) {
    const CopyTable table = table_of(plan, epoch);
    const auto copy = [&](const CopyRange& range, Share share) { copy_range(machine, table, range, share); };
    if (!write_cells(machine, control, plan, epoch, epoch == first, copy)) return false;
    if (!await_cells(machine, control, plan, epoch, false, copy)) return false;
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
