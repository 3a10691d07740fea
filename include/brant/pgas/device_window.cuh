#pragma once

#include "brant/device/put.cuh"
#include "brant/pgas/window_atomics.cuh"
#include "brant/pgas/window_members.cuh"

/// What kernels do in the global space by themselves: put, notify, get, wait, atomics and barriers in memory of other
/// processes. One text for nvcc, NVRTC and CPU threads, a template over the Machine (brant/base/simt.h).
///
///     __global__ void push(brant::pgas::DeviceWindow window, brant::notify::KernelControl control, ...) {
///       brant::simt::GpuThread machine;
///       brant::pgas::put_notify(machine, control, window, right, ghost, face, bytes, flag, step);
///       if (brant::pgas::wait(machine, control, window, flag, step) != brant::notify::Waited::rung) return;
///     }
///
/// Places are offsets into the window, and the same object has the same offset at all members. A *flag* is a word of
/// 64 bits at a multiple of 8: it begins as 0, only grows, and has one writer at a time.
///
/// A member whose memory is mapped (`is_mapped`) is reached by the kernel's own loads and stores, and nothing there can
/// fail. In builds without NDEBUG a place outside the window stops the kernel there, and says which it was. To any
/// other member the kernel sends *orders*, which the worker of its process performs (proxy_ring.cuh): that process must
/// make progress while the kernel runs. Then
/// - what is put must stay as it is until `flush`, or until an answer of the target says that it has come; but of 64
///   bytes at most, which are taken over. Those may lie anywhere, others in memory of the device or pinned memory;
/// - a put is visible at its target behind a flag that is set there by `put_notify`, `notify_member` or `barrier`
///   afterwards, and everywhere behind `flush`. A flag of a *mapped* member says nothing of it without a `flush`;
/// - atomics are those of RemoteSegment: not on device memory of another host.
///
/// All calls that may wait take the KernelControl, and end as notify::look_until says: when 64 orders are under way,
/// they wait for room. A window is lost when one of its members is: then they end as `aborted`, as waits for flags do,
/// and `GlobalSpace::status_of` names the member.
namespace brant::pgas {

namespace detail {

BRANT_DEVICE_CODE notify::DeviceBell flag_of(const DeviceWindow& window, unsigned member, Word flag) {
  return {checked_pointer<Word>(window, member, flag, sizeof(Word), sizeof(Word)), flag};
}

/// For one thread: the own flag has come so far.
template <typename Machine>
BRANT_DEVICE_CODE Waited wait_for_flag(Machine& machine, const KernelControl& control, const DeviceWindow& window,
                                       Word flag, Word epoch) {
  const Word* const word =
      machine.reach(checked_pointer<const Word>(window, window.member, flag, sizeof(Word), sizeof(Word)));
  const auto look = [&] { return machine.load_acquire(word); };
  if (window.ring.host == nullptr) return notify::look_until(machine, control, flag, epoch, look);
  return notify::look_until(machine, control, flag, epoch, look, fault_of(machine, window.ring));
}

}  // namespace detail

/// Copies to a member, by all threads of the scope; see notify::put. Who is notified behind it, by a thread of the
/// scope, sees the bytes.
template <typename Machine, typename Scope = notify::Block>
BRANT_DEVICE_CODE Waited put(Machine& machine, const KernelControl& control, const DeviceWindow& window,
                             unsigned member, Word to, const void* from, Word bytes, Scope scope = {}) {
  if (is_mapped(window, member)) {
    notify::put(machine, detail::checked_pointer<void>(window, member, to, bytes), from, bytes, scope);
    return Waited::rung;
  }
  const ProxyOrder order = detail::order_of(ProxyAct::put, member, to, bytes);
  return detail::tell_proxy(machine, control, window.ring, order, from, scope);
}

/// Sets a member's flag: whoever sees it there sees all that the threads of the scope have written before, to whomever
/// (but see above for what goes by the ring).
template <typename Machine, typename Scope = notify::Block>
BRANT_DEVICE_CODE Waited notify_member(Machine& machine, const KernelControl& control, const DeviceWindow& window,
                                       unsigned member, Word flag, Word epoch, Scope scope = {}) {
  if (is_mapped(window, member)) {
    notify::ring(machine, detail::flag_of(window, member, flag), epoch, scope);
    return Waited::rung;
  }
  const ProxyOrder order = detail::order_of(ProxyAct::notify, member, 0, 0, flag, epoch);
  return detail::tell_proxy(machine, control, window.ring, order, nullptr, scope);
}

/// Both. What the scope has put before, to this member or others, is visible as well when the flag is.
template <typename Machine, typename Scope = notify::Block>
BRANT_DEVICE_CODE Waited put_notify(Machine& machine, const KernelControl& control, const DeviceWindow& window,
                                    unsigned member, Word to, const void* from, Word bytes, Word flag, Word epoch,
                                    Scope scope = {}) {
  if (is_mapped(window, member)) {
    notify::put_and_ring(machine, detail::flag_of(window, member, flag), epoch,
                         detail::checked_pointer<void>(window, member, to, bytes), from, bytes, scope);
    return Waited::rung;
  }
  const ProxyOrder order = detail::order_of(ProxyAct::put_notify, member, to, bytes, flag, epoch);
  return detail::tell_proxy(machine, control, window.ring, order, from, scope);
}

/// Copies from a member, by all threads of the scope, which all see the bytes at the return. Each call reads what lies
/// there by then, so a kernel may look again and again; of bytes that are being written it gets any mixture of old and
/// new. To know that they are whole, see a flag that was set behind them, as `wait` does. Of one that gave up, the
/// bytes may still come.
template <typename Machine, typename Scope = notify::Block>
BRANT_DEVICE_CODE Waited get(Machine& machine, const KernelControl& control, const DeviceWindow& window,
                             unsigned member, Word from, void* to, Word bytes, Scope scope = {}) {
  if (is_mapped(window, member)) {
    notify::get(machine, to, detail::checked_pointer<const void>(window, member, from, bytes), bytes, scope);
    Scope::gather(machine);
    return Waited::rung;
  }
  return detail::get_by_proxy(machine, control, window.ring, detail::order_of(ProxyAct::get, member, from, bytes), to,
                              scope);
}

/// All that was put and notified by the ring before is visible at its target, whichever threads of the process did so,
/// and its sources are free. At once where all members are mapped.
template <typename Machine, typename Scope = notify::Block>
BRANT_DEVICE_CODE Waited flush(Machine& machine, const KernelControl& control, const DeviceWindow& window, Scope = {}) {
  if (window.ring.host == nullptr) return Waited::rung;
  Waited waited = Waited::rung;
  if (Scope::gather(machine))
    waited =
        detail::ask_proxy(machine, control, window.ring, detail::order_of(ProxyAct::flush, window.member), nullptr, 0);
  return Scope::share(machine, waited);
}

/// Whether the own flag has come so far; then what was written before it is there.
template <typename Machine>
BRANT_DEVICE_CODE bool test(Machine& machine, const DeviceWindow& window, Word flag, Word epoch) {
  return notify::test(machine, detail::flag_of(window, window.member, flag), epoch);
}

/// Waits for the own flag; all threads of the scope see what was written before it. Ends early as notify::look_until
/// says, which names the flag by its offset.
template <typename Machine, typename Scope = notify::Block>
BRANT_DEVICE_CODE Waited wait(Machine& machine, const KernelControl& control, const DeviceWindow& window, Word flag,
                              Word epoch, Scope = {}) {
  Waited waited = Waited::rung;
  if (Scope::gather(machine)) waited = detail::wait_for_flag(machine, control, window, flag, epoch);
  return Scope::share(machine, waited);
}

/// All members have come, one scope of each, and all see what all have written before. `flags`: kWindowMembers words
/// that belong to this barrier alone; `epoch`: 1, 2, 3 and so on. Ends early as `wait` does. Cost: a store to each
/// member, and the look of a wait; with members that go by the ring, a `flush` and an order for each of those.
template <typename Machine, typename Scope = notify::Block>
BRANT_DEVICE_CODE Waited barrier(Machine& machine, const KernelControl& control, const DeviceWindow& window, Word flags,
                                 Word epoch, Scope scope = {}) {
  Scope::gather(machine);
  if (const Waited flushed = flush(machine, control, window, scope); flushed != Waited::rung) return flushed;
  const Word stride = Scope::stride(machine);
  const Word mine = flags + window.member * sizeof(Word);
  Waited waited = Waited::rung;
  // The threads that tell were met by the others just now, so their release tells of all.
  for (Word each = Scope::first(machine); each < window.members && waited == Waited::rung; each += stride) {
    const auto member = static_cast<unsigned>(each);
    if (is_mapped(window, member)) {
      notify::ring(machine, detail::flag_of(window, member, mine), epoch, notify::Thread{});
    } else {
      const ProxyOrder order = detail::order_of(ProxyAct::notify_of_barrier, member, 0, 0, mine, epoch);
      waited = detail::tell_proxy(machine, control, window.ring, order, nullptr, notify::Thread{});
    }
  }
  for (Word member = Scope::first(machine); member < window.members && waited == Waited::rung; member += stride)
    waited = detail::wait_for_flag(machine, control, window, flags + member * sizeof(Word), epoch);
  Scope::gather(machine);
  return Scope::worst(machine, waited);
}

}  // namespace brant::pgas
