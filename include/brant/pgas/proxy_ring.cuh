#pragma once

#include "brant/device/notify.cuh"

/// How a kernel has the CPU of its process do what the kernel itself cannot: reach memory of another host, or memory
/// that is not mapped. Kernels write orders into a ring in memory of the host, the worker of the process takes them in
/// turn, performs them as ordinary puts, gets and atomics, and answers.
///
/// - A thread takes a *ticket* by an atomic in device memory, once the slot of that ticket is free; so whoever has a
///   ticket never waits before its order stands, and one that gives up leaves no gap.
/// - Across the bus there are release stores and acquire loads alone: `turn` of an order, behind its words, and `turn`
///   of an answer, behind its.
/// - A slot is free when the CPU has answered, and whoever waits for the answer has read it (`freed`, in device
/// memory).
///
/// Programs use brant/pgas/device_window.cuh.
namespace brant::pgas {

using notify::Waited;
using simt::Word;

inline constexpr Word kProxySlots = 64;
inline constexpr unsigned kProxyPayloadWords = 8;
/// So many bytes travel in the order or the answer itself, and may lie anywhere: in registers, in shared memory.
inline constexpr Word kProxyPayloadBytes = kProxyPayloadWords * sizeof(Word);

enum class ProxyAct : unsigned { put = 1, put_notify, notify, notify_of_barrier, get, atomic, flush };

/// 128 bytes that kernels alone write.
struct ProxyOrder {
  Word turn;  ///< Its ticket, plus one. Zero at first.
  Word act;
  Word member;
  Word place;  ///< Offset at the member: where a put goes, what a get reads, the word of an atomic.
  Word bytes;
  Word local;                        ///< Where the bytes are in this process; 0: in the order, or in the answer.
  Word flag;                         ///< Its offset at the member,
  Word epoch;                        ///< and what is written there.
  Word payload[kProxyPayloadWords];  ///< Of an atomic: operand, what is expected, AtomicOp, AtomicType.
};
inline constexpr unsigned kProxyHeaderWords = 8;

/// 128 bytes that the CPU alone writes.
struct ProxyAnswer {
  Word turn;    ///< That of the order.
  Word failed;  ///< 1: it was not performed.
  Word unused[6];
  Word payload[kProxyPayloadWords];
};

/// In memory of the host that the device reaches. Zeros at first.
struct ProxyHostPart {
  ProxyOrder orders[kProxySlots];
  ProxyAnswer answers[kProxySlots];
  Word fault;  ///< Not 0: the window is lost, and nothing more comes.
  Word unused[15];
};
/// In memory of the device. Zeros at first.
struct ProxyDevicePart {
  Word tickets;
  Word unused[15];
  /// Twice the turn that is over, plus one if nobody has waited for its answer, which then may be to come.
  Word freed[kProxySlots];
};

/// The two parts, as a kernel gets them.
struct ProxyRing {
  ProxyHostPart* host = nullptr;
  ProxyDevicePart* device = nullptr;
};

namespace detail {

/// By which errors name the ring: no flag has this offset.
inline constexpr Word kNumberOfProxy = ~Word{0};

/// Ends waits of a window that is lost.
template <typename Machine>
struct ProxyFault {
  Machine& machine;
  const Word* fault;
  BRANT_DEVICE_CODE Waited operator()() const {
    return machine.load_acquire(fault) == 0 ? Waited::rung : Waited::aborted;
  }
};
template <typename Machine>
BRANT_DEVICE_CODE ProxyFault<Machine> fault_of(Machine& machine, const ProxyRing& ring) {
  return {machine, &machine.reach(ring.host)->fault};
}

/// True if the word of device memory was `from` and now is `to`; an acquire and a release of the device's scope.
template <typename Machine>
BRANT_DEVICE_CODE bool compare_swap_device(Machine& machine, Word* word, Word from, Word to) {
#ifdef __CUDACC__
  static_cast<void>(machine);
  Word before;
  asm volatile("atom.acq_rel.gpu.cas.b64 %0, [%1], %2, %3;" : "=l"(before) : "l"(word), "l"(from), "l"(to) : "memory");
  return before == from;
#else
  return machine.claim(word, from, to);
#endif
}

/// The next ticket, if its slot is free.
template <typename Machine>
BRANT_DEVICE_CODE bool take_ticket(Machine& machine, const ProxyHostPart& host, ProxyDevicePart& device, Word& ticket) {
  const Word next = machine.load_acquire_device(&device.tickets);
  if (next >= kProxySlots) {
    const Word before = next + 1 - kProxySlots;  // the turn of who had the slot
    const Word freed = machine.load_acquire_device(&device.freed[next % kProxySlots]);
    if (freed >> 1 != before) return false;
    const bool answered = (freed & 1) == 0;
    if (!answered && machine.load_acquire(&host.answers[next % kProxySlots].turn) != before) return false;
  }
  if (!compare_swap_device(machine, &device.tickets, next, next + 1)) return false;
  ticket = next;
  return true;
}

/// Bytes as words; for one thread.
BRANT_DEVICE_CODE void pack_payload(Word* payload, const unsigned char* from, Word bytes) {
  for (unsigned i = 0; i < kProxyPayloadWords; ++i) payload[i] = 0;
  for (Word i = 0; i < bytes; ++i) payload[i / sizeof(Word)] |= Word{from[i]} << (i % sizeof(Word) * 8);
}
BRANT_DEVICE_CODE void unpack_payload(unsigned char* to, const Word* payload, Word bytes) {
  for (Word i = 0; i < bytes; ++i)
    to[i] = static_cast<unsigned char>(payload[i / sizeof(Word)] >> (i % sizeof(Word) * 8));
}

/// Puts an order into the ring, for one thread; what the thread has seen and written goes before it. `waits`: it will
/// call `await_answer`.
template <typename Machine>
BRANT_DEVICE_CODE Waited post_order(Machine& machine, const notify::KernelControl& control, const ProxyRing& ring,
                                    const ProxyOrder& order, bool waits, Word& ticket) {
  ProxyHostPart& host = *machine.reach(ring.host);
  ProxyDevicePart& device = *machine.reach(ring.device);
  const auto look = [&] { return Word{take_ticket(machine, host, device, ticket) ? 1u : 0u}; };
  const Waited waited = notify::look_until(machine, control, kNumberOfProxy, 1, look, fault_of(machine, ring));
  if (waited != Waited::rung) return waited;
  ProxyOrder& to = host.orders[ticket % kProxySlots];
  machine.store_relaxed(&to.act, order.act);
  machine.store_relaxed(&to.member, order.member);
  machine.store_relaxed(&to.place, order.place);
  machine.store_relaxed(&to.bytes, order.bytes);
  machine.store_relaxed(&to.local, order.local);
  machine.store_relaxed(&to.flag, order.flag);
  machine.store_relaxed(&to.epoch, order.epoch);
  for (unsigned i = 0; i < kProxyPayloadWords; ++i) machine.store_relaxed(&to.payload[i], order.payload[i]);
  machine.store_release(&to.turn, ticket + 1);
  if (!waits) machine.store_release_device(&device.freed[ticket % kProxySlots], (ticket + 1) << 1 | 1);
  return Waited::rung;
}

/// Waits for the answer, for the thread that posted; `payload`, if it is not null, gets so many words of it.
template <typename Machine>
BRANT_DEVICE_CODE Waited await_answer(Machine& machine, const notify::KernelControl& control, const ProxyRing& ring,
                                      Word ticket, Word* payload, unsigned words) {
  const ProxyAnswer& answer = machine.reach(ring.host)->answers[ticket % kProxySlots];
  Word& freed = machine.reach(ring.device)->freed[ticket % kProxySlots];
  const auto look = [&] { return machine.load_acquire(&answer.turn); };
  const Waited waited = notify::look_until(machine, control, kNumberOfProxy, ticket + 1, look, fault_of(machine, ring));
  if (waited != Waited::rung) {
    machine.store_release_device(&freed, (ticket + 1) << 1 | 1);
    return waited;
  }
  const bool failed = machine.load_relaxed(&answer.failed) != 0;
  for (unsigned i = 0; i < words; ++i) payload[i] = machine.load_relaxed(&answer.payload[i]);
  machine.store_release_device(&freed, (ticket + 1) << 1);
  return failed ? Waited::aborted : Waited::rung;
}

/// An order that nobody waits for, of all threads of the scope. `from`: what is put.
template <typename Machine, typename Scope>
BRANT_DEVICE_CODE Waited tell_proxy(Machine& machine, const notify::KernelControl& control, const ProxyRing& ring,
                                    ProxyOrder order, const void* from, Scope) {
  Waited waited = Waited::rung;
  if (Scope::gather(machine)) {
    if (order.bytes <= kProxyPayloadBytes) {
      pack_payload(order.payload, static_cast<const unsigned char*>(machine.reach(from)), order.bytes);
    } else {
      order.local = reinterpret_cast<Word>(from);
    }
    Word ticket = 0;
    waited = post_order(machine, control, ring, order, false, ticket);
  }
  return Scope::share(machine, waited);
}

/// An order that is waited for, of one thread.
template <typename Machine>
BRANT_DEVICE_CODE Waited ask_proxy(Machine& machine, const notify::KernelControl& control, const ProxyRing& ring,
                                   const ProxyOrder& order, Word* payload, unsigned words) {
  Word ticket = 0;
  const Waited waited = post_order(machine, control, ring, order, true, ticket);
  return waited != Waited::rung ? waited : await_answer(machine, control, ring, ticket, payload, words);
}

/// Of all threads of the scope, which all see the bytes.
template <typename Machine, typename Scope>
BRANT_DEVICE_CODE Waited get_by_proxy(Machine& machine, const notify::KernelControl& control, const ProxyRing& ring,
                                      ProxyOrder order, void* to, Scope) {
  Waited waited = Waited::rung;
  if (Scope::gather(machine)) {
    const bool in_answer = order.bytes <= kProxyPayloadBytes;
    if (!in_answer) order.local = reinterpret_cast<Word>(to);
    Word payload[kProxyPayloadWords] = {};
    waited = ask_proxy(machine, control, ring, order, payload, in_answer ? kProxyPayloadWords : 0);
    if (in_answer && waited == Waited::rung)
      unpack_payload(static_cast<unsigned char*>(machine.reach(to)), payload, order.bytes);
  }
  return Scope::share(machine, waited);
}

}  // namespace detail
}  // namespace brant::pgas
