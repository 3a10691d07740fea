#pragma once

#include "brant/device/notify.cuh"

/// Bytes that a kernel writes into memory of another device, of the host, or of its own device, and how whoever waits
/// for them hears of it; and bytes that it gets from there. What is written, in two ways:
///
/// - `put_and_ring` copies, and rings a bell behind the bytes. For any size. The ring waits until the bytes have
///   arrived, which takes about a microsecond over NVLink.
/// - `put_lines` and `take_lines` send words in lines of 16 bytes, each of which carries the epoch that it belongs to:
///   who finds the epoch has the word. There is no bell, and nothing waits for anything but the store. Half of what
///   crosses the link is epochs, so it is for some kilobytes at most.
namespace brant::notify {

/// A word of a message, and the epoch that it belongs to, in one access. It begins as zeros, and epochs with 1.
struct alignas(16) Line {
  Word epoch = 0;
  Word word = 0;
};

namespace detail {

#ifdef __CUDACC__
using Wide = ulonglong2;
template <typename Machine>
__device__ __forceinline__ void store(Machine&, Wide* to, Wide value) {
  *to = value;
}
template <typename Machine>
__device__ __forceinline__ void store(Machine&, Word* to, Word value) {
  *to = value;
}
__device__ __forceinline__ unsigned char load_byte(const unsigned char* from) {
  unsigned value;
  asm volatile("ld.relaxed.sys.u8 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return static_cast<unsigned char>(value);
}
#else
inline unsigned char load_byte(const unsigned char* from) {
  return std::atomic_ref(*const_cast<unsigned char*>(from)).load(std::memory_order_acquire);
}
struct Wide {
  Word x, y;
};
template <typename Machine>
void store(Machine& machine, Word* to, Word value) {
  machine.store_relaxed(to, value);
}
template <typename Machine>
void store(Machine& machine, Wide* to, Wide value) {
  machine.store_relaxed(&to->x, value.x);
  machine.store_relaxed(&to->y, value.y);
}
#endif
template <typename Machine>
BRANT_DEVICE_CODE void store(Machine&, unsigned char* to, unsigned char value) {
  *to = value;
}

/// How a copy loads. What the scope has seen already may come from a cache of the SM.
struct SeenAlready {
  template <typename Machine, typename Unit>
  BRANT_DEVICE_CODE static Unit load(Machine&, const Unit* from) {
    return *from;
  }
};
/// What others may have written since comes from where it lies: the cache of the SM does not hear of them.
struct WrittenByOthers {
  template <typename Machine>
  BRANT_DEVICE_CODE static Wide load(Machine& machine, const Wide* from) {
    const simt::Pair pair = machine.load_line(reinterpret_cast<const Word*>(from));
    return Wide{pair.first, pair.second};
  }
  template <typename Machine>
  BRANT_DEVICE_CODE static Word load(Machine& machine, const Word* from) {
    return machine.load_relaxed(from);
  }
  template <typename Machine>
  BRANT_DEVICE_CODE static unsigned char load(Machine&, const unsigned char* from) {
    return load_byte(from);
  }
};

/// All loads of a round are under way before its first store, since a store might change what the next load finds. From
/// unit `i` on, as long as there are whole rounds; returns where the next one begins.
template <typename Scope, typename How, unsigned kAtOnce, typename Unit, typename Machine>
BRANT_DEVICE_CODE Word copy_rounds(Machine& machine, Unit* there, const Unit* here, Word i, Word stop) {
  const Word stride = Scope::stride(machine);
  for (; i + (kAtOnce - 1) * stride < stop; i += kAtOnce * stride) {
    Unit units[kAtOnce];
    for (unsigned k = 0; k < kAtOnce; ++k) units[k] = How::load(machine, &here[i + k * stride]);
    for (unsigned k = 0; k < kAtOnce; ++k) store(machine, &there[i + k * stride], units[k]);
  }
  return i;
}

template <typename Scope, typename How, typename Unit, typename Machine>
BRANT_DEVICE_CODE void copy_units(Machine& machine, unsigned char* to, const unsigned char* from, Word begin,
                                  Word end) {
  Unit* const there = reinterpret_cast<Unit*>(to);
  const Unit* const here = reinterpret_cast<const Unit*>(from);
  if (begin == end) return;
  Word i = begin / sizeof(Unit) + Scope::first(machine);
  const Word stop = end / sizeof(Unit);
  if (stop - begin / sizeof(Unit) <= Scope::stride(machine)) {  // at most one each
    if (i < stop) store(machine, &there[i], How::load(machine, &here[i]));
    return;
  }
  i = copy_rounds<Scope, How, 8>(machine, there, here, i, stop);
  i = copy_rounds<Scope, How, 2>(machine, there, here, i, stop);
  copy_rounds<Scope, How, 1>(machine, there, here, i, stop);
}

/// 16 bytes at a time where both ends are aligned to that, 8 likewise, else one by one.
template <typename Scope, typename How, typename Machine>
BRANT_DEVICE_CODE void copy(Machine& machine, void* to, const void* from, Word bytes) {
  auto* const there = static_cast<unsigned char*>(machine.reach(to));
  const auto* const here = static_cast<const unsigned char*>(machine.reach(from));
  const Word misaligned = reinterpret_cast<Word>(there) | reinterpret_cast<Word>(here);
  const Word wide = misaligned % sizeof(Wide) == 0 ? bytes / sizeof(Wide) * sizeof(Wide) : 0;
  const Word words = misaligned % sizeof(Word) == 0 ? bytes / sizeof(Word) * sizeof(Word) : wide;
  copy_units<Scope, How, Wide>(machine, there, here, 0, wide);
  copy_units<Scope, How, Word>(machine, there, here, wide, words);
  copy_units<Scope, How, unsigned char>(machine, there, here, words, bytes);
}

}  // namespace detail

/// Copies bytes with all threads of the scope. They are there for whoever sees a ring that comes behind them. 16 at a
/// time where both ends are aligned to that, 8 likewise, else one by one. The two ends do not overlap; the source is
/// what the scope has seen already (its own writes, or behind a wait).
template <typename Machine, typename Scope = Block>
BRANT_DEVICE_CODE void put(Machine& machine, void* to, const void* from, Word bytes, Scope = {}) {
  detail::copy<Scope, detail::SeenAlready>(machine, to, from, bytes);
}

/// The same the other way: the source is memory that others write, and each call loads what lies there by then, past
/// the cache of the SM, which does not hear of what others write. A thread of the scope has its own part of the bytes
/// at the return; all of them see all behind a meeting of the scope.
template <typename Machine, typename Scope = Block>
BRANT_DEVICE_CODE void get(Machine& machine, void* to, const void* from, Word bytes, Scope = {}) {
  detail::copy<Scope, detail::WrittenByOthers>(machine, to, from, bytes);
}

/// The same, and a ring behind the bytes, of all threads of the scope. Cost: see `ring`.
template <typename Machine, typename Scope = Block>
BRANT_DEVICE_CODE void put_and_ring(Machine& machine, DeviceBell bell, Word epoch, void* to, const void* from,
                                    Word bytes, Scope scope = {}) {
  Scope::gather(machine);  // what others of the scope have written may be copied
  put(machine, to, from, bytes, scope);
  ring(machine, bell, epoch, scope);
}

/// Sends words in as many lines, which lie in memory that the receiver looks at. The lines of an epoch are written over
/// by the next one: the receiver must have taken them, and said so (by lines of its own, or by `ring_relaxed`). Says
/// nothing of other memory that was written before.
template <typename Machine, typename Scope = Block>
BRANT_DEVICE_CODE void put_lines(Machine& machine, Line* to, Word epoch, const Word* from, Word words, Scope = {}) {
  Scope::gather(machine);
  Line* const there = machine.reach(to);
  const Word* const here = machine.reach(from);
  const Word stride = Scope::stride(machine);
  for (Word i = Scope::first(machine); i < words; i += stride) {
    machine.store_line(&there[i].epoch, simt::Pair{epoch, here[i]});
  }
}

/// Waits for so many lines of an epoch, and gives their words; all callers see them. It ends early as `look_together`
/// says, which names the lines by `number`. All threads look: have the lines in memory of the device that waits.
template <typename Machine, typename Scope = Block>
BRANT_DEVICE_CODE Waited take_lines(Machine& machine, const KernelControl& control, const Line* from, Word epoch,
                                    Word* to, Word words, Word number = 0, Scope scope = {}) {
  const Line* const there = machine.reach(from);
  Word* const here = machine.reach(to);
  const Word stride = Scope::stride(machine);
  Word i = Scope::first(machine);
  const auto look = [&] {
    while (i < words) {
      const simt::Pair line = machine.load_line(&there[i].epoch);
      if (!reached(line.first, epoch)) return line.first;
      detail::store(machine, &here[i], line.second);
      i += stride;
    }
    return epoch;
  };
  const Waited waited = look_together(machine, control, number, epoch, look, scope);
  Scope::gather(machine);
  return waited;
}

#ifdef __CUDACC__

// For kernels that run on GPUs alone.

template <typename Scope = Block>
BRANT_DEVICE_CODE void put_and_ring(DeviceBell bell, Word epoch, void* to, const void* from, Word bytes,
                                    Scope scope = {}) {
  simt::GpuThread machine;
  put_and_ring(machine, bell, epoch, to, from, bytes, scope);
}
template <typename Scope = Block>
BRANT_DEVICE_CODE void put_lines(Line* to, Word epoch, const Word* from, Word words, Scope scope = {}) {
  simt::GpuThread machine;
  put_lines(machine, to, epoch, from, words, scope);
}
template <typename Scope = Block>
BRANT_DEVICE_CODE Waited take_lines(const KernelControl& control, const Line* from, Word epoch, Word* to, Word words,
                                    Word number = 0, Scope scope = {}) {
  simt::GpuThread machine;
  return take_lines(machine, control, from, epoch, to, words, number, scope);
}

#endif

}  // namespace brant::notify
