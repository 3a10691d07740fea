#pragma once

#include "brant/device/notify.cuh"
#include "brant/halo/squads.cuh"

/// What the kernels of modes `stream` and `stacked` do: one text for the GPU and the emulated device.
namespace brant::halo {

struct TriggeredMessage {
  Word first = 0;  ///< Chunks,
  Word last = 0;   ///< up to before this one.
  /// Of the kernel that packs: what it rings, and the fan-in of all blocks where they pack it together.
  notify::DeviceBell packed;
  notify::FanIn fan_in;
  /// Of the kernel that unpacks: which neighbour it comes from, and which of its messages it is.
  Word neighbour = 0;
  Word number = 0;
};

/// A process that sends messages.
struct TriggeredNeighbour {
  notify::DeviceBell came;  ///< In memory of the host, rung by it: so many have come, in all exchanges, in their order.
  Word* passed_on = nullptr;  ///< In device memory: the same, as block 0 has seen it.
  Word count = 0;             ///< Of one exchange.
};

/// For one of the two kernels.
struct TriggeredPlan {
  CopyTable table;
  const TriggeredMessage* messages = nullptr;  ///< In device memory.
  Word count = 0;
  const TriggeredNeighbour* neighbours = nullptr;  ///< In device memory; of the kernel that unpacks.
  Word neighbour_count = 0;
  Word own_first = 0;  ///< Chunks that are no message's.
  Word own_last = 0;
  notify::DeviceBell finished;
  Word together = 0;  ///< All blocks do one message after another; 0: each block does its messages alone.
  Word unpacks = 0;
};

/// By block 0, a thread for each neighbour: tells the others, in device memory, how many messages have come. So memory
/// of the host is looked at once, whoever waits; looks of all blocks would hold up everything else on the bus. False:
/// some have not come.
template <typename Machine>
BRANT_DEVICE_CODE bool pass_on(Machine& machine, const notify::KernelControl& control, const TriggeredPlan& plan,
                               Word epoch) {
  const TriggeredNeighbour* const all = plan.neighbour_count == 0 ? nullptr : machine.reach(plan.neighbours);
  bool failed = false;
  for (Word n = machine.thread(); n < plan.neighbour_count; n += machine.threads()) {
    const TriggeredNeighbour& neighbour = all[n];
    const Word* const came = machine.reach(static_cast<const Word*>(neighbour.came.word));
    Word* const passed_on = machine.reach(neighbour.passed_on);
    Word told = (epoch - 1) * neighbour.count;
    const auto look = [&] {
      const Word seen = machine.load_acquire(came);
      if (seen != told) machine.store_release_device(passed_on, seen);
      return told = seen;
    };
    const Word all_of_them = epoch * neighbour.count;
    failed |= notify::look_until(machine, control, neighbour.came.number, all_of_them, look) != notify::Waited::rung;
  }
  return !machine.sync_block_any(failed);
}

/// Until the message is there, by all threads of a block. False: it has not come.
template <typename Machine>
BRANT_DEVICE_CODE bool await_message(Machine& machine, const notify::KernelControl& control, const TriggeredPlan& plan,
                                     const TriggeredMessage& message, Word epoch) {
  const TriggeredNeighbour& from = machine.reach(plan.neighbours)[message.neighbour];
  const Word wanted = (epoch - 1) * from.count + message.number + 1;
  const notify::DeviceBell seen{from.passed_on, from.came.number};
  return notify::wait(machine, control, seen, wanted, notify::Block{}) == notify::Waited::rung;
}

/// Block 0 does nothing but look for what comes, unless it is alone.
template <typename Machine>
BRANT_DEVICE_CODE bool unpack(Machine& machine, const notify::KernelControl& control, const TriggeredPlan& plan,
                              const CopyTable& table, Word epoch) {
  const bool alone = machine.blocks() == 1;
  if (machine.block() == 0) {
    if (!pass_on(machine, control, plan, epoch)) return false;
    if (!alone) return true;
  }
  const Share all = alone ? Share{} : Share{machine.block() - 1, machine.blocks() - 1};
  const Share mine = plan.together != 0 ? all : Share{};
  const TriggeredMessage* const messages = plan.count == 0 ? nullptr : machine.reach(plan.messages);
  for (Word m = plan.together != 0 ? 0 : all.part; m < plan.count; m += plan.together != 0 ? 1 : all.parts) {
    if (!alone && !await_message(machine, control, plan, messages[m], epoch)) return false;
    copy_by_squads(machine, table, messages[m].first, messages[m].last, mine);
  }
  return true;
}

template <typename Machine>
BRANT_DEVICE_CODE void pack(Machine& machine, const TriggeredPlan& plan, const CopyTable& table, Word epoch) {
  const Share all{machine.block(), machine.blocks()};
  const TriggeredMessage* const messages = plan.count == 0 ? nullptr : machine.reach(plan.messages);
  if (plan.together != 0) {
    for (Word m = 0; m < plan.count; ++m) {
      copy_by_squads(machine, table, messages[m].first, messages[m].last, all);
      notify::arrive(machine, messages[m].packed, messages[m].fan_in, epoch, notify::Block{});
    }
  } else {
    for (Word m = machine.block(); m < plan.count; m += machine.blocks()) {
      copy_by_squads(machine, table, messages[m].first, messages[m].last, {});
      notify::ring(machine, messages[m].packed, epoch, notify::Block{});
    }
  }
  copy_by_squads(machine, table, plan.own_first, plan.own_last, all);
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
    if (plan.unpacks == 0) {
      pack(machine, plan, table, item.words[0]);
    } else if (!unpack(machine, control, plan, table, item.words[0])) {
      continue;
    }
    life.done(plan.finished, item.words[0]);
  }
  life.leave();
}

}  // namespace brant::halo
