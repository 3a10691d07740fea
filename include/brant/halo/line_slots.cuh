#pragma once

#include "brant/device/put.cuh"
#include "brant/halo/cell_copy.cuh"

/// Cells that carry the number of their exchange, word by word: one text for the GPU, the emulated device and the model
/// checker.
namespace brant::halo {

/// Words that two processes send each other, as many one way as the other. Slot k is a word of either direction, and
/// one thread does both: it sends its word of an exchange behind its taking of the word of the exchange before, which
/// the other process sent behind its taking of the one before that. So lines of two exchanges are enough, no exchange
/// asks whether it may begin, and it does not matter how many threads either process has.
struct LineSlots {
  const CopyUnit* sends = nullptr;  ///< From a word of this process to a line of another one; of even exchanges, then
  const CopyUnit* takes = nullptr;  ///< of odd ones. From a line of this process to a word of it; likewise.
  Word count = 0;                   ///< Of one exchange.
  Word number = 0;                  ///< What a wait in vain is reported as.
};

/// The words of this thread. All blocks see what they are to send.
template <typename Machine>
BRANT_DEVICE_CODE void send_in_lines(Machine& machine, const LineSlots& slots, Word epoch) {
  constexpr unsigned kBatch = 4;
  if (slots.count == 0) return;
  const CopyUnit* const all = machine.reach(slots.sends) + epoch % 2 * slots.count;
  const unsigned stride = machine.blocks() * machine.threads();
  for (Word slot = machine.block() * machine.threads() + machine.thread(); slot < slots.count;
       slot += kBatch * stride) {
    CopyUnit places[kBatch];
    Word words[kBatch];
    for (unsigned i = 0; i < kBatch; ++i) {
      if (slot + i * stride < slots.count) places[i] = all[slot + i * stride];
    }
    for (unsigned i = 0; i < kBatch; ++i) {
      if (slot + i * stride >= slots.count) continue;
      const auto* const from = machine.reach(reinterpret_cast<const unsigned char*>(places[i].from));
      // Null: freed by a program that gave up, on the emulated device.
      if (from != nullptr) {
        words[i] = load_unit<Word>(from);
      } else {
        places[i].to = 0;
      }
    }
    for (unsigned i = 0; i < kBatch; ++i) {
      if (slot + i * stride >= slots.count || places[i].to == 0) continue;
      auto* const line = machine.reach(reinterpret_cast<notify::Line*>(places[i].to));
      if (line != nullptr) machine.store_line(&line->epoch, simt::Pair{epoch, words[i]});
    }
  }
}

/// Waits for the words of this thread, and takes each where it belongs. False, to the whole block: one has not come.
/// What others take it sees when all blocks have met.
template <typename Machine>
BRANT_DEVICE_CODE bool take_in_lines(Machine& machine, const notify::KernelControl& control, const LineSlots& slots,
                                     Word epoch) {
  if (slots.count == 0) return true;
  const CopyUnit* const all = machine.reach(slots.takes) + epoch % 2 * slots.count;
  const unsigned stride = machine.blocks() * machine.threads();
  Word slot = machine.block() * machine.threads() + machine.thread();
  const auto look = [&] {
    while (slot < slots.count) {
      const CopyUnit place = all[slot];
      const auto* const line = machine.reach(reinterpret_cast<const notify::Line*>(place.from));
      auto* const to = machine.reach(reinterpret_cast<unsigned char*>(place.to));
      if (line != nullptr && to != nullptr) {  // null: freed by a program that gave up
        const simt::Pair seen = machine.load_line(&line->epoch);
        if (!notify::reached(seen.first, epoch)) return seen.first;
        store_unit(to, seen.second);
      }
      slot += stride;
    }
    return epoch;
  };
  return notify::look_together(machine, control, slots.number, epoch, look, notify::Block{}) == notify::Waited::rung;
}

}  // namespace brant::halo
