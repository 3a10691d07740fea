#pragma once

#include "brant/base/status.h"
#include "ops/channel/stream_mailbox.h"

#ifdef __CUDACC__
#define BRANT_STEP __device__ inline
#else
#define BRANT_STEP inline
#endif

/// What the kernels of stream-triggered transfers do, once for GPUs and CPU threads. `Machine` is one thread of one
/// block: its place, its way to words that others write, and the clock. All threads of a block call a step.
///
/// Order: bytes are written, every block fences and counts itself done, and the last one publishes the turn; whoever
/// has seen a turn sees the bytes.
namespace brant::stream_steps {

inline constexpr unsigned kSpinsPerLook = 2048;  ///< The CPU's words lie behind PCIe: a look takes a microsecond.

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
BRANT_STEP void give_up(StreamMailbox& own, StreamControl& control, Status why) {
  own.fault = static_cast<std::uint64_t>(why);
  Machine::store_release(control.fault, static_cast<std::uint64_t>(why));
}

/// Waits in bounded time until `look()` holds. Thread 0.
template <typename Machine, typename Look>
BRANT_STEP bool wait(StreamMailbox& own, StreamControl& control, Look&& look) {
  std::uint64_t begin = 0;
  for (unsigned spins = 0; !look(); Machine::pause()) {
    if (++spins % kSpinsPerLook != 0) continue;
    const std::uint64_t now = Machine::now_ns();
    if (begin == 0) begin = now;
    const auto abort = static_cast<Status>(Machine::load_acquire(control.abort));
    const bool late = now - begin > control.patience_ns;
    if (abort == Status::ok && !late) continue;
    give_up<Machine>(own, control, late ? Status::timed_out : abort);
    return false;
  }
  return true;
}

template <typename Machine>
BRANT_STEP void report(StreamControl::Report* to, const StreamMailbox& own, const Decision& decision) {
  if (to == nullptr) return;
  to->bytes = decision.bytes;
  const bool late = decision.outcome == StreamOutcome::truncated;
  to->status = !decision.go ? own.fault : static_cast<std::uint64_t>(late ? Status::truncated : Status::ok);
}

/// Where the message goes: into the landing of its receive, or, while that is not known, into the other end's memory
/// for small messages.
template <typename Machine>
BRANT_STEP void decide_send(StreamMailbox& own, StreamMailbox& peer, StreamControl& control, Decision& decision) {
  const std::uint64_t index = own.sent;
  const StreamMailbox::Landing& landing = own.landings[index % StreamMailbox::kSlots];
  decision.turn = index + 1;
  decision.to = nullptr;
  decision.go = own.fault == 0 && wait<Machine>(own, control, [&] {
                  if (Machine::load_acquire(landing.turn) == decision.turn) {
                    if (decision.bytes > landing.bytes) {
                      decision.outcome = StreamOutcome::truncated;
                      return true;
                    }
                    std::byte* base = Machine::load_acquire(own.bases[landing.base]);
                    if (base != nullptr) {
                      decision.outcome = StreamOutcome::direct;
                      decision.to = Machine::reach(base) + landing.offset;
                      return true;
                    }
                  }
                  const bool small = decision.bytes <= StreamMailbox::kEagerBytes && Machine::blocks() == 1;
                  if (!small || index - Machine::load_acquire(own.consumed) >= StreamMailbox::kEagerSlots) return false;
                  decision.outcome = StreamOutcome::eager;
                  decision.to = peer.eager[index % StreamMailbox::kEagerSlots];
                  return true;
                });
}

/// Sends the next message of this end.
template <typename Machine>
BRANT_STEP void send(StreamMailbox& own, StreamMailbox& peer, StreamControl& control, const std::byte* from,
                     std::uint64_t bytes, StreamControl::Report* to_tell, Decision& decision) {
  if (Machine::thread() == 0) {
    decision.bytes = bytes;
    decide_send<Machine>(own, peer, control, decision);
  }
  Machine::join_block();
  if (decision.go && decision.to != nullptr) Machine::copy(decision.to, from, bytes);
  Machine::join_block();
  if (Machine::thread() != 0) return;
  if (!Machine::last_block_done(own.blocks_done)) return;
  if (decision.go && own.fault == 0) {
    StreamMailbox::Arrival& arrival = peer.arrivals[(decision.turn - 1) % StreamMailbox::kSlots];
    arrival.bytes = bytes;
    arrival.outcome = static_cast<std::uint64_t>(decision.outcome);
    Machine::store_release(arrival.turn, decision.turn);
    own.sent = decision.turn;
  }
  report<Machine>(to_tell, own, decision);
}

/// A receive as its first half tells the sender of it.
struct Receive {
  std::byte* address;
  std::uint64_t bytes;
  std::uint64_t base;
  std::uint64_t offset;
};

/// Tells the sender where its next message lands. One thread.
template <typename Machine>
BRANT_STEP void start_receive(StreamMailbox& own, StreamMailbox& peer, StreamControl& control, const Receive& receive) {
  if (own.fault != 0) return;
  const std::uint64_t index = own.started;
  if (index - own.received >= StreamMailbox::kSlots) {
    give_up<Machine>(own, control, Status::limit_reached);
    return;
  }
  own.targets[index % StreamMailbox::kSlots] = {receive.address, receive.bytes};
  StreamMailbox::Landing& landing = peer.landings[index % StreamMailbox::kSlots];
  landing.bytes = receive.bytes;
  landing.offset = receive.offset;
  landing.base = receive.base;
  Machine::store_release(landing.turn, index + 1);
  own.started = index + 1;
}

/// Waits for the message of the oldest receive that was started. One block.
template <typename Machine>
BRANT_STEP void finish_receive(StreamMailbox& own, StreamMailbox& peer, StreamControl& control,
                               StreamControl::Report* to_tell, Decision& decision) {
  const std::uint64_t index = own.received;
  if (Machine::thread() == 0) {
    const StreamMailbox::Arrival& arrival = own.arrivals[index % StreamMailbox::kSlots];
    decision.turn = index + 1;
    decision.to = nullptr;
    decision.bytes = 0;
    decision.go = own.fault == 0;
    if (decision.go && own.started == index) {  // none was started
      give_up<Machine>(own, control, Status::invalid_argument);
      decision.go = false;
    }
    decision.go = decision.go &&
                  wait<Machine>(own, control, [&] { return Machine::load_acquire(arrival.turn) == decision.turn; });
    if (decision.go) {
      const StreamMailbox::Target& target = own.targets[index % StreamMailbox::kSlots];
      decision.bytes = arrival.bytes;
      decision.outcome = static_cast<StreamOutcome>(arrival.outcome);
      if (decision.outcome == StreamOutcome::eager) {
        if (decision.bytes > target.bytes) {
          decision.outcome = StreamOutcome::truncated;
        } else {
          decision.to = Machine::reach(target.address);
          decision.from = own.eager[index % StreamMailbox::kEagerSlots];
        }
      }
    }
  }
  Machine::join_block();
  if (decision.go && decision.to != nullptr) Machine::copy(decision.to, decision.from, decision.bytes);
  Machine::join_block();
  if (Machine::thread() != 0) return;
  if (decision.go) {
    own.received = decision.turn;
    Machine::store_release(peer.consumed, decision.turn);
  }
  report<Machine>(to_tell, own, decision);
}

}  // namespace brant::stream_steps
