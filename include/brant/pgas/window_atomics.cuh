#pragma once

#include "brant/base/word_atomics.cuh"
#include "brant/pgas/window_members.cuh"

/// Atomics of kernels in a window: what brant/base/atomic.h says of words and operations, by one thread each. Programs
/// include brant/pgas/device_window.cuh.
///
/// They are ordered on both sides: what this thread did before is seen by who sees the new value. Of a mapped member
/// other devices and this one may work on the same word; CPUs only in memory of the host, and only where the bus
/// carries atomics of devices. Those that go by the ring are RemoteSegment's, which the worker performs.
namespace brant::pgas {

using notify::KernelControl;

namespace detail {

template <typename T>
struct NotDeduced {
  using Type = T;
};
/// A parameter whose type another one decides.
template <typename T>
using Given = typename NotDeduced<T>::Type;

/// By the ring, of one thread.
template <typename T, typename Machine>
BRANT_DEVICE_CODE Waited ask_atomic(Machine& machine, const KernelControl& control, const DeviceWindow& window,
                                    unsigned member, Word offset, AtomicOp operation, T operand, T expected,
                                    T& before) {
  ProxyOrder order = order_of(ProxyAct::atomic, member, offset);
  using Bits = words::Bits<T>;
  order.payload[0] = words::same_bits<Bits>(operand);
  order.payload[1] = words::same_bits<Bits>(expected);
  order.payload[2] = static_cast<Word>(operation);
  order.payload[3] = static_cast<Word>(words::kTypeOf<T>);
  Word answer = 0;
  const Waited waited = ask_proxy(machine, control, window.ring, order, &answer, 1);
  if (waited == Waited::rung) before = words::same_bits<T>(static_cast<Bits>(answer));
  return waited;
}

template <typename T, typename Machine>
BRANT_DEVICE_CODE T* word_of(Machine& machine, const DeviceWindow& window, unsigned member, Word offset) {
  return machine.reach(checked_pointer<T>(window, member, offset, sizeof(T), sizeof(T)));
}

}  // namespace detail

/// Performs an operation on a word of a member; `before`, which says of which type it is, gets the value that was there
/// (of a store, 0). For compare_swap there is a call of its own.
///
///     float least;
///     pgas::fetch(machine, control, window, 0, kResidual, AtomicOp::min, mine, least);
template <typename T, typename Machine>
BRANT_DEVICE_CODE Waited fetch(Machine& machine, const KernelControl& control, const DeviceWindow& window,
                               unsigned member, Word offset, AtomicOp operation, detail::Given<T> operand, T& before) {
  if (!is_mapped(window, member))
    return detail::ask_atomic<T>(machine, control, window, member, offset, operation, operand, T{}, before);
  before = words::perform<T>(detail::word_of<T>(machine, window, member, offset), operation, operand, T{});
  return Waited::rung;
}

/// One whose value before nobody asks for: `atomic<int>(machine, control, window, 0, kDone, AtomicOp::store, 1)`. When
/// it returns it is done, also where it goes by the ring.
template <typename T, typename Machine>
BRANT_DEVICE_CODE Waited atomic(Machine& machine, const KernelControl& control, const DeviceWindow& window,
                                unsigned member, Word offset, AtomicOp operation, detail::Given<T> operand) {
  T before;
  return fetch<T>(machine, control, window, member, offset, operation, operand, before);
}

template <typename T, typename Machine>
BRANT_DEVICE_CODE Waited fetch_add(Machine& machine, const KernelControl& control, const DeviceWindow& window,
                                   unsigned member, Word offset, detail::Given<T> value, T& before) {
  return fetch<T>(machine, control, window, member, offset, AtomicOp::add, value, before);
}

/// The same without any order where the member is mapped, for counters: a third of the time.
template <typename T, typename Machine>
BRANT_DEVICE_CODE Waited fetch_add_relaxed(Machine& machine, const KernelControl& control, const DeviceWindow& window,
                                           unsigned member, Word offset, detail::Given<T> value, T& before) {
  if (!is_mapped(window, member)) return fetch_add<T>(machine, control, window, member, offset, value, before);
  T* const word = detail::word_of<T>(machine, window, member, offset);
  before = words::add_relaxed<T>(word, value);
  return Waited::rung;
}

/// Stores `desired` where `expected` stands, by their bits.
template <typename T, typename Machine>
BRANT_DEVICE_CODE Waited compare_swap(Machine& machine, const KernelControl& control, const DeviceWindow& window,
                                      unsigned member, Word offset, detail::Given<T> expected, detail::Given<T> desired,
                                      T& before) {
  if (!is_mapped(window, member))
    return detail::ask_atomic<T>(machine, control, window, member, offset, AtomicOp::compare_swap, desired, expected,
                                 before);
  before =
      words::perform<T>(detail::word_of<T>(machine, window, member, offset), AtomicOp::compare_swap, desired, expected);
  return Waited::rung;
}

}  // namespace brant::pgas
