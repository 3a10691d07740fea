#pragma once

#include "brant/base/status.h"
#include "ops/stream/mailbox.h"
#include "port/simt.h"

/// What the kernels of stream-triggered transfers do, once for GPUs and CPU threads. `Machine` (port/simt.h, and a
/// `copy` by all threads of the grid) is one thread of one block. All threads of a block call a step.
///
/// Order: bytes are written, every block fences and counts itself done, and the last one publishes the turn; whoever
/// has seen a turn sees the bytes. Lines need no order.
namespace brant::stream_steps {

inline constexpr unsigned kSpinsPerLook = 2048;  ///< The CPU's words lie behind PCIe: a look takes a microsecond.

/// What one end tells the other of a message, in one word, so that it takes one look.
struct StreamArrival {
  static constexpr unsigned kTurnBits = 24, kOutcomeBits = 3;
  static constexpr std::uint64_t kTurnMask =
      (std::uint64_t{1} << kTurnBits) - 1;  ///< Slots are used again long before.
  static constexpr std::uint64_t kBytesMax = (std::uint64_t{1} << (64 - kTurnBits - kOutcomeBits)) - 1;  // 137 GB

  BRANT_DEVICE_CODE static std::uint64_t word(std::uint64_t turn, StreamOutcome outcome, std::uint64_t bytes) {
    return (turn & kTurnMask) | static_cast<std::uint64_t>(outcome) << kTurnBits | bytes << (kTurnBits + kOutcomeBits);
  }
  BRANT_DEVICE_CODE static bool is_of(std::uint64_t word, std::uint64_t turn) {
    return (word & kTurnMask) == (turn & kTurnMask);
  }
  BRANT_DEVICE_CODE static StreamOutcome outcome(std::uint64_t word) {
    return static_cast<StreamOutcome>(word >> kTurnBits & ((1u << kOutcomeBits) - 1));
  }
  BRANT_DEVICE_CODE static std::uint64_t bytes(std::uint64_t word) { return word >> (kTurnBits + kOutcomeBits); }
};

/// What thread 0 has found out, for its block. Lies in the block's shared memory.
struct Decision {
  std::byte* to;
  const std::byte* from;
  std::uint64_t turn;
  std::uint64_t bytes;
  StreamOutcome outcome;
  bool go;  ///< False: given up, nothing may be published.
};

template <typename Machine>
BRANT_DEVICE_CODE void give_up(Machine& machine, StreamMailbox& own, StreamControl& control, Status why) {
  machine.store_release(&own.fault, static_cast<std::uint64_t>(why));
  machine.store_release(&control.fault, static_cast<std::uint64_t>(why));
}

/// Waits in bounded time until `look()` holds.
template <typename Machine, typename Look>
BRANT_DEVICE_CODE bool wait(Machine& machine, StreamMailbox& own, StreamControl& control, Look&& look) {
  std::uint64_t begin = 0;
  for (unsigned spins = 0; !look(); machine.pause()) {
    if (++spins % kSpinsPerLook != 0) continue;
    const std::uint64_t now = machine.now_ns();
    if (begin == 0) begin = now;
    const auto abort = static_cast<Status>(machine.load_acquire(&control.abort));
    const bool late = now - begin > control.patience_ns;
    if (abort == Status::ok && !late) continue;
    give_up(machine, own, control, late ? Status::timed_out : abort);
    return false;
  }
  return true;
}

BRANT_DEVICE_CODE void report(StreamControl::Report* to, const StreamMailbox& own, const Decision& decision) {
  if (to == nullptr) return;
  to->bytes = decision.bytes;
  const bool late = decision.outcome == StreamOutcome::truncated;
  to->status = !decision.go ? own.fault : static_cast<std::uint64_t>(late ? Status::truncated : Status::ok);
}

// Lines
// -------------------------------------------------------------------------------------------------------------------

BRANT_DEVICE_CODE unsigned bytes_of_word(std::uint64_t word, std::uint64_t bytes) {
  const std::uint64_t left = bytes - word * 4;
  return left < 4 ? static_cast<unsigned>(left) : 4u;
}

/// Sends bytes as words that carry their turn. All threads of the block.
template <typename Machine>
BRANT_DEVICE_CODE void put_line(Machine& machine, std::uint64_t* line, const std::byte* from, std::uint64_t bytes,
                                std::uint64_t turn) {
  for (std::uint64_t i = machine.thread(); i * 4 < bytes; i += machine.threads()) {
    std::uint64_t word = turn << 32;
    for (unsigned k = 0; k < bytes_of_word(i, bytes); ++k) {
      word |= static_cast<std::uint64_t>(from[i * 4 + k]) << (8 * k);
    }
    machine.store_relaxed(&line[i], word);
  }
}

/// Receives them: each thread waits for its own words.
template <typename Machine>
BRANT_DEVICE_CODE void take_line(Machine& machine, StreamMailbox& own, StreamControl& control,
                                 const std::uint64_t* line, std::byte* to, std::uint64_t bytes, std::uint64_t turn) {
  for (std::uint64_t i = machine.thread(); i * 4 < bytes; i += machine.threads()) {
    std::uint64_t word = 0;
    const bool came = wait(machine, own, control, [&] {
      word = machine.load_relaxed(&line[i]);
      return word >> 32 == (turn & 0xffffffffu);
    });
    if (!came) return;
    for (unsigned k = 0; k < bytes_of_word(i, bytes); ++k) to[i * 4 + k] = static_cast<std::byte>(word >> (8 * k));
  }
}

// Sends
// -------------------------------------------------------------------------------------------------------------------

/// The landing of the message's receive, if it is known by now.
template <typename Machine>
BRANT_DEVICE_CODE bool find_landing(Machine& machine, StreamMailbox& own, StreamControl& control, bool small,
                                    Decision& decision) {
  const StreamMailbox::Landing& landing = own.landings[(decision.turn - 1) % StreamMailbox::kSlots];
  if (machine.load_acquire(&landing.turn) != decision.turn) return false;
  if (decision.bytes > landing.bytes) {
    decision.outcome = StreamOutcome::truncated;
    return true;
  }
  const std::uint64_t base = machine.load_acquire(&own.bases[landing.base]);
  if (base == 0) return false;
  if (base == StreamMailbox::kUnmapped) {
    if (small) return false;
    give_up(machine, own, control, Status::not_supported);
    return true;
  }
  decision.outcome = StreamOutcome::direct;
  decision.to = machine.reach(reinterpret_cast<std::byte*>(base)) + landing.offset;
  return true;
}

/// Where the message goes: into the landing of its receive, or into the other end's memory if it is small and the
/// landing not known. The smallest do not even look for it: that would take longer than the way around.
template <typename Machine>
BRANT_DEVICE_CODE void decide_send(Machine& machine, StreamMailbox& own, StreamMailbox& peer, StreamControl& control,
                                   Decision& decision) {
  const std::uint64_t index = own.sent;
  decision.turn = index + 1;
  decision.to = nullptr;
  decision.outcome = StreamOutcome::direct;
  const bool line = decision.bytes <= StreamMailbox::kLineBytes;
  const bool small = decision.bytes <= StreamMailbox::kEagerBytes && machine.blocks() == 1;
  const auto found = [&] {
    if (!line && find_landing(machine, own, control, small, decision)) return true;
    if (small && index - machine.load_acquire(&own.consumed) < StreamMailbox::kEagerSlots) {
      decision.outcome = line ? StreamOutcome::line : StreamOutcome::eager;
      if (!line) decision.to = peer.eager[index % StreamMailbox::kEagerSlots];
      return true;
    }
    return line && find_landing(machine, own, control, small, decision);
  };
  decision.go = own.fault == 0 && wait(machine, own, control, found) && own.fault == 0;
}

/// Sends the next message of this end.
template <typename Machine>
BRANT_DEVICE_CODE void send(Machine& machine, StreamMailbox& own, StreamMailbox& peer, StreamControl& control,
                            const std::byte* from, std::uint64_t bytes, StreamControl::Report* to_tell,
                            Decision& decision) {
  if (machine.thread() == 0) {
    decision.bytes = bytes;
    decide_send(machine, own, peer, control, decision);
  }
  machine.sync_block();
  const std::uint64_t index = decision.turn - 1;
  std::uint64_t& arrival = peer.arrivals[index % StreamMailbox::kSlots];
  const std::uint64_t word = StreamArrival::word(decision.turn, decision.outcome, bytes);
  if (decision.go && decision.outcome == StreamOutcome::line) {
    if (machine.thread() == 0) machine.store_relaxed(&arrival, word);  // first: the words behind it are waited for
    put_line(machine, peer.lines[index % StreamMailbox::kEagerSlots], from, bytes, decision.turn);
  } else if (decision.go && decision.to != nullptr) {
    machine.copy(decision.to, from, bytes);
  }
  machine.sync_block();
  if (machine.thread() != 0 || !machine.last_block(&own.blocks_done)) return;
  if (decision.go && own.fault == 0) {
    if (decision.outcome != StreamOutcome::line) machine.store_release(&arrival, word);
    own.sent = decision.turn;
  }
  report(to_tell, own, decision);
}

// Receives
// -------------------------------------------------------------------------------------------------------------------

/// A receive as its first half tells the sender of it.
struct Receive {
  std::byte* address;
  std::uint64_t bytes;
  std::uint64_t base;
  std::uint64_t offset;
};

/// Tells the sender where its next message lands, and which are consumed. One thread.
template <typename Machine>
BRANT_DEVICE_CODE void start_receive(Machine& machine, StreamMailbox& own, StreamMailbox& peer, StreamControl& control,
                                     const Receive& receive) {
  if (own.fault != 0) return;
  const std::uint64_t index = own.started;
  if (index - own.received >= StreamMailbox::kSlots) {
    give_up(machine, own, control, Status::limit_reached);
    return;
  }
  own.targets[index % StreamMailbox::kSlots] = {receive.address, receive.bytes};
  StreamMailbox::Landing& landing = peer.landings[index % StreamMailbox::kSlots];
  landing.bytes = receive.bytes;
  landing.offset = receive.offset;
  landing.base = receive.base;
  machine.store_release(&landing.turn, index + 1);
  machine.store_release(&peer.consumed, own.received);  // here and not at the end of a receive, which others wait for
  own.started = index + 1;
}

/// Waits for word of the message of the oldest receive that was started. Thread 0.
template <typename Machine>
BRANT_DEVICE_CODE void await_arrival(Machine& machine, StreamMailbox& own, StreamControl& control, Decision& decision) {
  const std::uint64_t index = own.received;
  const StreamMailbox::Target target = own.targets[index % StreamMailbox::kSlots];
  decision.turn = index + 1;
  decision.to = nullptr;
  decision.bytes = 0;
  decision.go = own.fault == 0;
  if (decision.go && own.started == index) {  // none was started
    give_up(machine, own, control, Status::invalid_argument);
    decision.go = false;
  }
  std::uint64_t word = 0;
  decision.go = decision.go && wait(machine, own, control, [&] {
                  word = machine.load_acquire(&own.arrivals[index % StreamMailbox::kSlots]);
                  return word != 0 && StreamArrival::is_of(word, decision.turn);
                });
  if (!decision.go) return;
  decision.bytes = StreamArrival::bytes(word);
  decision.outcome = StreamArrival::outcome(word);
  if (decision.outcome == StreamOutcome::direct || decision.outcome == StreamOutcome::truncated) return;
  if (decision.bytes > target.bytes) {
    decision.outcome = StreamOutcome::truncated;
  } else {
    decision.to = machine.reach(target.address);
    decision.from = own.eager[index % StreamMailbox::kEagerSlots];
  }
}

/// Ends the oldest receive that was started. One block.
template <typename Machine>
BRANT_DEVICE_CODE void finish_receive(Machine& machine, StreamMailbox& own, StreamControl& control,
                                      StreamControl::Report* to_tell, Decision& decision) {
  if (machine.thread() == 0) await_arrival(machine, own, control, decision);
  machine.sync_block();
  if (decision.go && decision.outcome == StreamOutcome::line) {
    const std::uint64_t* line = own.lines[(decision.turn - 1) % StreamMailbox::kEagerSlots];
    take_line(machine, own, control, line, decision.to, decision.bytes, decision.turn);
  } else if (decision.go && decision.to != nullptr) {
    machine.copy(decision.to, decision.from, decision.bytes);
  }
  machine.sync_block();
  if (machine.thread() != 0) return;
  decision.go = decision.go && own.fault == 0;
  if (decision.go) own.received = decision.turn;
  report(to_tell, own, decision);
}

}  // namespace brant::stream_steps
