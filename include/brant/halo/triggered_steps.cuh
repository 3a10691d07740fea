#pragma once

#include "brant/device/notify.cuh"
#include "brant/halo/squads.cuh"

/// What the kernels of modes `stream` and `stacked` do: one text for the GPU and the emulated device. A program's own
/// kernel that stays may do it as well, between its steps: it gets the plans by `HaloExchange::device_messages`, and
/// calls pack_messages, unpack_messages, tell_taken and await_sent for the exchanges 1, 2, 3 and so on, with all its
/// blocks, while the CPU sends and receives.
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

/// What a kernel of the program's own gets, which does both.
struct MessagePlan {
  TriggeredPlan packs;
  TriggeredPlan unpacks;
  notify::DeviceBell taken;  ///< Rung by the kernel: what came was taken, so the next messages may come into its place.
  notify::DeviceBell sent;   ///< Rung by the CPU: all messages have gone, so others may be packed in their place.
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

/// Takes what comes into the ghosts. Block 0 does nothing but look for it, unless it is alone. `copy(range,
/// share)`: the share of the block of a range. False: some have not come.
template <typename Machine, typename Copy>
BRANT_DEVICE_CODE bool unpack_messages(Machine& machine, const notify::KernelControl& control,
                                       const TriggeredPlan& plan, Word epoch, Copy&& copy) {
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
    copy(CopyRange{messages[m].first, messages[m].last}, mine);
  }
  return true;
}

/// Packs all messages, and rings for each; then copies what stays in this process. No block waits.
template <typename Machine, typename Copy>
BRANT_DEVICE_CODE void pack_messages(Machine& machine, const TriggeredPlan& plan, Word epoch, Copy&& copy) {
  const Share all{machine.block(), machine.blocks()};
  const TriggeredMessage* const messages = plan.count == 0 ? nullptr : machine.reach(plan.messages);
  if (plan.together != 0) {
    for (Word m = 0; m < plan.count; ++m) {
      copy(CopyRange{messages[m].first, messages[m].last}, all);
      notify::arrive(machine, messages[m].packed, messages[m].fan_in, epoch, notify::Block{});
    }
  } else {
    for (Word m = machine.block(); m < plan.count; m += machine.blocks()) {
      copy(CopyRange{messages[m].first, messages[m].last}, Share{});
      notify::ring(machine, messages[m].packed, epoch, notify::Block{});
    }
  }
  copy(CopyRange{plan.own_first, plan.own_last}, all);
}

/// By block 0, when it knows that all blocks have unpacked.
template <typename Machine>
BRANT_DEVICE_CODE void tell_taken(Machine& machine, const MessagePlan& plan, Word epoch) {
  if (machine.block() == 0) notify::ring(machine, plan.taken, epoch, notify::Block{});
}

/// By block 0: the others know by what it does next that they may pack. False: some message has not gone.
template <typename Machine>
BRANT_DEVICE_CODE bool await_sent(Machine& machine, const notify::KernelControl& control, const MessagePlan& plan,
                                  Word epoch) {
  if (machine.block() != 0) return true;
  return notify::wait(machine, control, plan.sent, epoch, notify::Block{}) == notify::Waited::rung;
}

/// A kernel that stays, and packs or unpacks the messages of each item: its words are the epoch, and to what the bases
/// are aligned in it. See exchange_as_told for a block that has waited in vain.
template <typename Machine>
BRANT_DEVICE_CODE void pack_as_told(Machine& machine, const notify::KernelControl& control, const TriggeredPlan& plan) {
  notify::KernelLife<Machine> life(machine, control);
  notify::Item item;
  CopyTable table = plan.table;
  const auto copy = [&](const CopyRange& range, Share share) { copy_range(machine, table, range, share); };
  while (life.next(item)) {
    table.unit_max = item.words[1];
    if (plan.unpacks == 0) {
      pack_messages(machine, plan, item.words[0], copy);
    } else if (!unpack_messages(machine, control, plan, item.words[0], copy)) {
      continue;
    }
    life.done(plan.finished, item.words[0]);
  }
  life.leave();
}

}  // namespace brant::halo
