#pragma once

#include "brant/device/put.cuh"

#ifndef __CUDACC__
#include <atomic>
#endif

/// What kernels do in the global space by themselves: put, notify, get, wait, atomics and barriers in memory that the
/// processes of one host have mapped of each other. One text for nvcc, NVRTC and CPU threads, a template over the
/// Machine (brant/base/simt.h).
///
///     __global__ void push(brant::pgas::DeviceWindow window, brant::notify::KernelControl control, ...) {
///       brant::simt::GpuThread machine;
///       brant::pgas::put_notify(machine, window, right, ghost, face, bytes, flag, step);   // the neighbour's GPU
///       if (brant::pgas::wait(machine, control, window, flag, step) != brant::notify::Waited::rung) return;
///     }
///
/// Places are offsets into the window, and the same object has the same offset at all members. A *flag* is a word of
/// 64 bits at a multiple of 8: it begins as 0, only grows, and has one writer at a time.
namespace brant::pgas {

using notify::Waited;
using simt::Word;

inline constexpr unsigned kWindowMembers = 16;

/// Memory of the same size at each of several processes of one host, as a kernel of one of them reaches it. By value;
/// made by `GlobalSpace::window`.
struct DeviceWindow {
  void* bases[kWindowMembers] = {};
  Word bytes = 0;       ///< Of each.
  unsigned member = 0;  ///< Whose kernel this is.
  unsigned members = 0;
};

/// Where a member's part lies; for kernels that load and store there by themselves.
template <typename T>
BRANT_DEVICE_CODE T* peer_pointer(const DeviceWindow& window, unsigned member, Word offset) {
  return reinterpret_cast<T*>(static_cast<unsigned char*>(window.bases[member]) + offset);
}

namespace detail {
BRANT_DEVICE_CODE notify::DeviceBell flag_of(const DeviceWindow& window, unsigned member, Word flag) {
  return {peer_pointer<Word>(window, member, flag), flag};
}
}  // namespace detail

/// Copies to a member, by all threads of the scope; see notify::put. Who is notified behind it, by a thread of the
/// scope, sees the bytes.
template <typename Machine, typename Scope = notify::Block>
BRANT_DEVICE_CODE void put(Machine& machine, const DeviceWindow& window, unsigned member, Word to, const void* from,
                           Word bytes, Scope scope = {}) {
  notify::put(machine, peer_pointer<void>(window, member, to), from, bytes, scope);
}

/// Sets a member's flag: whoever sees it there sees all that the threads of the scope have written before, to whomever.
template <typename Machine, typename Scope = notify::Block>
BRANT_DEVICE_CODE void notify_member(Machine& machine, const DeviceWindow& window, unsigned member, Word flag,
                                     Word epoch, Scope scope = {}) {
  notify::ring(machine, detail::flag_of(window, member, flag), epoch, scope);
}

/// Both. What the scope has put before, to this member or others, is visible as well when the flag is.
template <typename Machine, typename Scope = notify::Block>
BRANT_DEVICE_CODE void put_notify(Machine& machine, const DeviceWindow& window, unsigned member, Word to,
                                  const void* from, Word bytes, Word flag, Word epoch, Scope scope = {}) {
  notify::put_and_ring(machine, detail::flag_of(window, member, flag), epoch, peer_pointer<void>(window, member, to),
                       from, bytes, scope);
}

/// Copies from a member, by all threads of the scope, which all see the bytes at the return. What lies there must be
/// known to be ready, as behind a wait: a flag that is seen here is no order for what another device still writes.
template <typename Machine, typename Scope = notify::Block>
BRANT_DEVICE_CODE void get(Machine& machine, const DeviceWindow& window, unsigned member, Word from, void* to,
                           Word bytes, Scope scope = {}) {
  notify::put(machine, to, static_cast<const void*>(peer_pointer<unsigned char>(window, member, from)), bytes, scope);
  Scope::gather(machine);
}

/// Whether the own flag has come so far; then what was written before it is there.
template <typename Machine>
BRANT_DEVICE_CODE bool test(Machine& machine, const DeviceWindow& window, Word flag, Word epoch) {
  return notify::test(machine, detail::flag_of(window, window.member, flag), epoch);
}

/// Waits for the own flag; all threads of the scope see what was written before it. Ends early as notify::look_until
/// says, which names the flag by its offset.
template <typename Machine, typename Scope = notify::Block>
BRANT_DEVICE_CODE Waited wait(Machine& machine, const notify::KernelControl& control, const DeviceWindow& window,
                              Word flag, Word epoch, Scope scope = {}) {
  return notify::wait(machine, control, detail::flag_of(window, window.member, flag), epoch, scope);
}

/// Adds to a word of a member, of one thread, and gives what it was before. Ordered on both sides: what this thread did
/// before is seen by who sees the sum. Other devices and this one may add to the same word; CPUs only to memory of the
/// host, and only where the bus carries atomics of devices.
template <typename Machine>
BRANT_DEVICE_CODE Word fetch_add(Machine& machine, const DeviceWindow& window, unsigned member, Word offset,
                                 Word value) {
  Word* const word = machine.reach(peer_pointer<Word>(window, member, offset));
#ifdef __CUDACC__
  __threadfence_system();
  const Word before = atomicAdd_system(reinterpret_cast<unsigned long long*>(word), value);
  __threadfence_system();
  return before;
#else
  return std::atomic_ref(*word).fetch_add(value, std::memory_order_acq_rel);
#endif
}

/// Stores `desired` where `expected` stands; gives what it was before.
template <typename Machine>
BRANT_DEVICE_CODE Word compare_swap(Machine& machine, const DeviceWindow& window, unsigned member, Word offset,
                                    Word expected, Word desired) {
  Word* const word = machine.reach(peer_pointer<Word>(window, member, offset));
#ifdef __CUDACC__
  __threadfence_system();
  const Word before = atomicCAS_system(reinterpret_cast<unsigned long long*>(word), expected, desired);
  __threadfence_system();
  return before;
#else
  std::atomic_ref(*word).compare_exchange_strong(expected, desired, std::memory_order_acq_rel);
  return expected;
#endif
}

/// All members have come, one scope of each, and all see what all have written before. `flags`: kWindowMembers words
/// that belong to this barrier alone; `epoch`: 1, 2, 3 and so on. Ends early as `wait` does. Cost: a store to each
/// member, and the look of a wait.
template <typename Machine, typename Scope = notify::Block>
BRANT_DEVICE_CODE Waited barrier(Machine& machine, const notify::KernelControl& control, const DeviceWindow& window,
                                 Word flags, Word epoch, Scope = {}) {
  Scope::gather(machine);
  const Word stride = Scope::stride(machine);
  // The threads that tell were met by the others just now, so their release tells of all.
  for (Word member = Scope::first(machine); member < window.members; member += stride) {
    const Word mine = flags + window.member * sizeof(Word);
    notify::ring(machine, detail::flag_of(window, static_cast<unsigned>(member), mine), epoch, notify::Thread{});
  }
  Waited waited = Waited::rung;
  for (Word member = Scope::first(machine); member < window.members && waited == Waited::rung; member += stride) {
    const Word theirs = flags + member * sizeof(Word);
    waited = notify::wait(machine, control, detail::flag_of(window, window.member, theirs), epoch, notify::Thread{});
  }
  Scope::gather(machine);
  return Scope::worst(machine, waited);
}

}  // namespace brant::pgas
