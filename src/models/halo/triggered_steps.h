#pragma once

#include "brant/device/notify.cuh"
#include "models/halo/cell_copy.h"

/// What the kernels of modes `stream` and `stacked` do: one text for the GPU and the emulated device.
namespace brant::halo {

struct TriggeredMessage {
  Word first = 0;  ///< Chunks,
  Word last = 0;   ///< up to before this one.
  notify::DeviceBell bell;
  notify::FanIn fan_in;  ///< Of all blocks.
};

/// For one of the two kernels.
struct TriggeredPlan {
  CopyTable table;
  const TriggeredMessage* messages = nullptr;  ///< In device memory.
  Word count = 0;
  Word own_first = 0;  ///< Chunks that are no message's.
  Word own_last = 0;
  notify::DeviceBell finished;
  notify::DeviceBell passed_on;  ///< In device memory: messages that have come, of all exchanges, where it is stacked.
  Word stacked = 0;              ///< All blocks do one message after another; 0: each block does its messages alone.
  Word unpacks = 0;              ///< The bell of a message tells this kernel that it has come; 0: the kernel rings it.
};

/// A part of a block that copies one chunk, beside others.
template <typename Machine>
class Squad {
 public:
  BRANT_DEVICE_CODE explicit Squad(Machine& machine) : machine_(machine) {}
  [[nodiscard]] BRANT_DEVICE_CODE unsigned thread() const { return machine_.thread() % kChunkThreads; }
  [[nodiscard]] BRANT_DEVICE_CODE unsigned threads() const {
    return machine_.threads() < kChunkThreads ? machine_.threads() : kChunkThreads;
  }
  [[nodiscard]] BRANT_DEVICE_CODE unsigned number() const { return machine_.thread() / kChunkThreads; }
  [[nodiscard]] BRANT_DEVICE_CODE unsigned squads() const { return machine_.threads() / threads(); }
  template <typename T>
  BRANT_DEVICE_CODE T* reach(T* pointer) const {
    return machine_.reach(pointer);
  }

 private:
  Machine& machine_;
};

/// Chunks `first` to `last`, by the block alone, or its share of those that all blocks do.
template <typename Machine>
BRANT_DEVICE_CODE void copy_by_squads(Machine& machine, const CopyTable& table, Word first, Word last, bool together) {
  Squad<Machine> squad(machine);
  const Word place = together ? Word{machine.block()} * squad.squads() + squad.number() : squad.number();
  const Word places = together ? Word{machine.blocks()} * squad.squads() : squad.squads();
  for (Word chunk = first + place; chunk < last; chunk += places) copy_chunk(squad, table, chunk);
}

/// Until a message has come. Where all blocks wait for the same one, block 0 alone looks at memory of the host, and
/// passes it on: looks of all of them would hold up everything else on the bus.
template <typename Machine>
BRANT_DEVICE_CODE bool await_message(Machine& machine, const notify::KernelControl& control, const TriggeredPlan& plan,
                                     Word number, notify::DeviceBell bell, Word epoch) {
  const notify::Block block;
  if (plan.stacked == 0) return notify::wait(machine, control, bell, epoch, block) == notify::Waited::rung;
  const Word passed = (epoch - 1) * plan.count + number + 1;
  if (machine.block() != 0) {
    return notify::wait(machine, control, plan.passed_on, passed, block) == notify::Waited::rung;
  }
  if (notify::wait(machine, control, bell, epoch, block) != notify::Waited::rung) return false;
  notify::ring(machine, plan.passed_on, passed, block);
  return true;
}

/// All messages of one exchange that are this block's, in turn. False: one of them has not come.
template <typename Machine>
BRANT_DEVICE_CODE bool do_messages(Machine& machine, const notify::KernelControl& control, const TriggeredPlan& plan,
                                   const CopyTable& table, Word epoch) {
  const bool together = plan.stacked != 0;
  const TriggeredMessage* const all = plan.count == 0 ? nullptr : machine.reach(plan.messages);
  for (Word m = together ? 0 : machine.block(); m < plan.count; m += together ? 1 : machine.blocks()) {
    const TriggeredMessage& message = all[m];
    if (plan.unpacks != 0 && !await_message(machine, control, plan, m, message.bell, epoch)) return false;
    copy_by_squads(machine, table, message.first, message.last, together);
    if (plan.unpacks != 0) continue;
    if (together) {
      notify::arrive(machine, message.bell, message.fan_in, epoch, notify::Block{});
    } else {
      notify::ring(machine, message.bell, epoch, notify::Block{});
    }
  }
  return true;
}

/// A kernel that stays, and packs or unpacks the messages of each item: its words are the epoch, and to what the bases
/// are aligned in it. See exchange_as_told for a block that has waited in vain.
template <typename Machine>
BRANT_DEVICE_CODE void pack_as_told(Machine& machine, const notify::KernelControl& control, const TriggeredPlan& plan) {
  notify::KernelLife<Machine> life(machine, control);
  notify::Item item;
  while (life.next(item)) {
    CopyTable table = plan.table;
    table.unit_max = item.words[1];
    if (!do_messages(machine, control, plan, table, item.words[0])) continue;
    copy_by_squads(machine, table, plan.own_first, plan.own_last, true);
    life.done(plan.finished, item.words[0]);
  }
  life.leave();
}

}  // namespace brant::halo
