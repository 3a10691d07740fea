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

/// Which of how many parts of the chunks of a message a block does.
struct Share {
  Word part = 0;
  Word parts = 1;
};

/// The share of the block of chunks `first` to `last`.
template <typename Machine>
BRANT_DEVICE_CODE void copy_by_squads(Machine& machine, const CopyTable& table, Word first, Word last, Share share) {
  Squad<Machine> squad(machine);
  const Word squads = squad.squads();
  for (Word chunk = first + share.part * squads + squad.number(); chunk < last; chunk += share.parts * squads) {
    copy_chunk(squad, table, chunk);
  }
}

/// Messages before that of the number, in all exchanges.
BRANT_DEVICE_CODE Word messages_before(const TriggeredPlan& plan, Word epoch, Word number) {
  return (epoch - 1) * plan.count + number;
}

/// By one warp: tells all blocks, in device memory, how many of the messages have come, in their order. The lanes look
/// ahead, so that messages that have come together cost one trip across the bus. False: one has not come.
template <typename Machine>
BRANT_DEVICE_CODE bool pass_on(Machine& machine, const notify::KernelControl& control, const TriggeredPlan& plan,
                               Word epoch) {
  const TriggeredMessage* const all = plan.count == 0 ? nullptr : machine.reach(plan.messages);
  for (Word m = 0; m < plan.count;) {
    if (notify::wait(machine, control, all[m].bell, epoch, notify::Warp{}) != notify::Waited::rung) return false;
    const Word left = plan.count - m;
    const unsigned looks = left < notify::kLanes ? static_cast<unsigned>(left) : notify::kLanes;
    m += machine.leading(looks, [&](unsigned i) { return notify::test(machine, all[m + i].bell, epoch); });
    notify::ring(machine, plan.passed_on, messages_before(plan, epoch, m), notify::Warp{});
  }
  return true;
}

/// Unpacks all messages in turn, with all blocks. Block 0 alone looks at memory of the host, and does nothing else:
/// looks of all of them would hold up everything else on the bus.
template <typename Machine>
BRANT_DEVICE_CODE bool unpack_stacked(Machine& machine, const notify::KernelControl& control, const TriggeredPlan& plan,
                                      const CopyTable& table, Word epoch) {
  const notify::Block block;
  const bool alone = machine.blocks() == 1;
  if (machine.block() == 0) {
    const bool failed = machine.thread() < notify::kLanes && !pass_on(machine, control, plan, epoch);
    if (machine.sync_block_any(failed)) return false;
    if (!alone) return true;
  }
  const Share share = alone ? Share{} : Share{machine.block() - Word{1}, machine.blocks() - Word{1}};
  const TriggeredMessage* const all = plan.count == 0 ? nullptr : machine.reach(plan.messages);
  for (Word m = 0; m < plan.count; ++m) {
    const Word wanted = messages_before(plan, epoch, m + 1);
    if (notify::wait(machine, control, plan.passed_on, wanted, block) != notify::Waited::rung) return false;
    copy_by_squads(machine, table, all[m].first, all[m].last, share);
  }
  return true;
}

template <typename Machine>
BRANT_DEVICE_CODE void pack_stacked(Machine& machine, const TriggeredPlan& plan, const CopyTable& table, Word epoch) {
  const TriggeredMessage* const all = plan.count == 0 ? nullptr : machine.reach(plan.messages);
  for (Word m = 0; m < plan.count; ++m) {
    copy_by_squads(machine, table, all[m].first, all[m].last, {machine.block(), machine.blocks()});
    notify::arrive(machine, all[m].bell, all[m].fan_in, epoch, notify::Block{});
  }
}

/// The messages of this block, which it does alone.
template <typename Machine>
BRANT_DEVICE_CODE bool do_own_messages(Machine& machine, const notify::KernelControl& control,
                                       const TriggeredPlan& plan, const CopyTable& table, Word epoch) {
  const notify::Block block;
  const TriggeredMessage* const all = plan.count == 0 ? nullptr : machine.reach(plan.messages);
  for (Word m = machine.block(); m < plan.count; m += machine.blocks()) {
    const bool waits = plan.unpacks != 0;
    if (waits && notify::wait(machine, control, all[m].bell, epoch, block) != notify::Waited::rung) return false;
    copy_by_squads(machine, table, all[m].first, all[m].last, {});
    if (!waits) notify::ring(machine, all[m].bell, epoch, block);
  }
  return true;
}

/// All messages of one exchange that are this block's. False: one of them has not come.
template <typename Machine>
BRANT_DEVICE_CODE bool do_messages(Machine& machine, const notify::KernelControl& control, const TriggeredPlan& plan,
                                   const CopyTable& table, Word epoch) {
  if (plan.stacked == 0) return do_own_messages(machine, control, plan, table, epoch);
  if (plan.unpacks != 0) return unpack_stacked(machine, control, plan, table, epoch);
  pack_stacked(machine, plan, table, epoch);
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
    copy_by_squads(machine, table, plan.own_first, plan.own_last, {machine.block(), machine.blocks()});
    life.done(plan.finished, item.words[0]);
  }
  life.leave();
}

}  // namespace brant::halo
