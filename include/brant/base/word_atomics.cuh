#pragma once

#include "brant/base/atomic_op.h"
#include "brant/base/simt.h"

#ifndef __CUDACC__
#include <cstring>
#endif

/// Atomics on a word that a thread reaches, for kernels and for CPUs: what brant/base/atomic.h says of words and
/// operations. Of system scope: all CPUs and devices that reach a word as these do agree on it.
namespace brant::words {

using simt::Word;

template <unsigned kBytes>
struct BitsOf {
  using Type = Word;
};
template <>
struct BitsOf<4> {
  using Type = unsigned;
};
template <typename T>
using Bits = typename BitsOf<sizeof(T)>::Type;

template <typename T>
inline constexpr bool kIsFloating = static_cast<T>(0.5f) != static_cast<T>(0);
template <typename T>
inline constexpr bool kIsSigned = static_cast<T>(-1) < static_cast<T>(0);

template <typename T>
inline constexpr AtomicType kTypeOf = kIsFloating<T>   ? (sizeof(T) == 4 ? AtomicType::f32 : AtomicType::f64)
                                      : sizeof(T) == 4 ? (kIsSigned<T> ? AtomicType::i32 : AtomicType::u32)
                                                       : (kIsSigned<T> ? AtomicType::i64 : AtomicType::u64);

template <typename To, typename From>
BRANT_DEVICE_CODE To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "of one size");
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

#ifdef __CUDACC__

/// Instructions on a word, of system scope: an acquire and a release.
struct WordAccess {
  using Long = long long;

  static __device__ __forceinline__ unsigned load(const unsigned* word) {
    unsigned value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
  }
  static __device__ __forceinline__ Word load(const Word* word) {
    Word value;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
  }
  static __device__ __forceinline__ void store(unsigned* word, unsigned value) {
    asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
  }
  static __device__ __forceinline__ void store(Word* word, Word value) {
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  static __device__ __forceinline__ unsigned swap(unsigned* word, unsigned value) {
    unsigned before;
    asm volatile("atom.acq_rel.sys.exch.b32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ Word swap(Word* word, Word value) {
    Word before;
    asm volatile("atom.acq_rel.sys.exch.b64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ unsigned compare_swap(unsigned* word, unsigned expected, unsigned desired) {
    unsigned before;
    asm volatile("atom.acq_rel.sys.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(before)
                 : "l"(word), "r"(expected), "r"(desired)
                 : "memory");
    return before;
  }
  static __device__ __forceinline__ Word compare_swap(Word* word, Word expected, Word desired) {
    Word before;
    asm volatile("atom.acq_rel.sys.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(before)
                 : "l"(word), "l"(expected), "l"(desired)
                 : "memory");
    return before;
  }
  static __device__ __forceinline__ unsigned add(unsigned* word, unsigned value) {
    unsigned before;
    asm volatile("atom.acq_rel.sys.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ Word add(Word* word, Word value) {
    Word before;
    asm volatile("atom.acq_rel.sys.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ float add(float* word, float value) {
    float before;
    asm volatile("atom.acq_rel.sys.add.f32 %0, [%1], %2;" : "=f"(before) : "l"(word), "f"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ double add(double* word, double value) {
    double before;
    asm volatile("atom.acq_rel.sys.add.f64 %0, [%1], %2;" : "=d"(before) : "l"(word), "d"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ unsigned min(unsigned* word, unsigned value) {
    unsigned before;
    asm volatile("atom.acq_rel.sys.min.u32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ unsigned max(unsigned* word, unsigned value) {
    unsigned before;
    asm volatile("atom.acq_rel.sys.max.u32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ int min(int* word, int value) {
    int before;
    asm volatile("atom.acq_rel.sys.min.s32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ int max(int* word, int value) {
    int before;
    asm volatile("atom.acq_rel.sys.max.s32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ Word min(Word* word, Word value) {
    Word before;
    asm volatile("atom.acq_rel.sys.min.u64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ Word max(Word* word, Word value) {
    Word before;
    asm volatile("atom.acq_rel.sys.max.u64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ Long min(Long* word, Long value) {
    Long before;
    asm volatile("atom.acq_rel.sys.min.s64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ Long max(Long* word, Long value) {
    Long before;
    asm volatile("atom.acq_rel.sys.max.s64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ unsigned bit_and(unsigned* word, unsigned value) {
    unsigned before;
    asm volatile("atom.acq_rel.sys.and.b32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ Word bit_and(Word* word, Word value) {
    Word before;
    asm volatile("atom.acq_rel.sys.and.b64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ unsigned bit_or(unsigned* word, unsigned value) {
    unsigned before;
    asm volatile("atom.acq_rel.sys.or.b32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ Word bit_or(Word* word, Word value) {
    Word before;
    asm volatile("atom.acq_rel.sys.or.b64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ unsigned bit_xor(unsigned* word, unsigned value) {
    unsigned before;
    asm volatile("atom.acq_rel.sys.xor.b32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ Word bit_xor(Word* word, Word value) {
    Word before;
    asm volatile("atom.acq_rel.sys.xor.b64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(value) : "memory");
    return before;
  }
};

/// The same without any order.
struct RelaxedAccess {
  static __device__ __forceinline__ unsigned add(unsigned* word, unsigned value) {
    unsigned before;
    asm volatile("atom.relaxed.sys.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ Word add(Word* word, Word value) {
    Word before;
    asm volatile("atom.relaxed.sys.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ float add(float* word, float value) {
    float before;
    asm volatile("atom.relaxed.sys.add.f32 %0, [%1], %2;" : "=f"(before) : "l"(word), "f"(value) : "memory");
    return before;
  }
  static __device__ __forceinline__ double add(double* word, double value) {
    double before;
    asm volatile("atom.relaxed.sys.add.f64 %0, [%1], %2;" : "=d"(before) : "l"(word), "d"(value) : "memory");
    return before;
  }
};

/// As whom instructions know a number: there are those of 32 bits and of 64, and not of `long` and `long long`.
template <typename T, bool kFloating = kIsFloating<T>, bool kSigned = kIsSigned<T>, unsigned kBytes = sizeof(T)>
struct NumberOf {
  using Type = T;
};
template <typename T>
struct NumberOf<T, false, true, 8> {
  using Type = long long;
};
template <typename T, unsigned kBytes>
struct NumberOf<T, false, false, kBytes> {
  using Type = Bits<T>;
};

#else

/// The same of a CPU thread.
struct WordAccess {
  template <typename T>
  static T load(const T* word) noexcept {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
  }
  template <typename T>
  static void store(T* word, T value) noexcept {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
  }
  template <typename T>
  static T swap(T* word, T value) noexcept {
    return __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);
  }
  template <typename T>
  static T compare_swap(T* word, T expected, T desired) noexcept {
    __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return expected;
  }
  template <typename T>
  static T add(T* word, T value) noexcept;
  template <typename T>
  static T min(T* word, T value) noexcept;
  template <typename T>
  static T max(T* word, T value) noexcept;
  template <typename T>
  static T bit_and(T* word, T value) noexcept {
    return __atomic_fetch_and(word, value, __ATOMIC_ACQ_REL);
  }
  template <typename T>
  static T bit_or(T* word, T value) noexcept {
    return __atomic_fetch_or(word, value, __ATOMIC_ACQ_REL);
  }
  template <typename T>
  static T bit_xor(T* word, T value) noexcept {
    return __atomic_fetch_xor(word, value, __ATOMIC_ACQ_REL);
  }
};

template <typename T>
struct NumberOf {
  using Type = T;
};

#endif

/// For what no instruction does: tries until nobody came in between.
template <typename T, typename Next>
BRANT_DEVICE_CODE T update(T* word, const Next& next) {
  Bits<T>* const bits = reinterpret_cast<Bits<T>*>(word);
  Bits<T> seen = WordAccess::load(bits);
  for (;;) {
    const T before = same_bits<T>(seen);
    const Bits<T> found = WordAccess::compare_swap(bits, seen, same_bits<Bits<T>>(next(before)));
    if (found == seen) return before;
    seen = found;
  }
}

#ifndef __CUDACC__
struct RelaxedAccess {
  template <typename T>
  static T add(T* word, T value) noexcept {
    return WordAccess::add(word, value);
  }
};

template <typename T>
T WordAccess::add(T* word, T value) noexcept {
  if constexpr (kIsFloating<T>) {
    return update(word, [value](T before) { return before + value; });
  } else {
    return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
  }
}
template <typename T>
T WordAccess::min(T* word, T value) noexcept {
  return update(word, [value](T before) { return value < before ? value : before; });
}
template <typename T>
T WordAccess::max(T* word, T value) noexcept {
  return update(word, [value](T before) { return before < value ? value : before; });
}
#endif

template <typename T>
BRANT_DEVICE_CODE T least(T* word, T value) {
  if constexpr (kIsFloating<T>) {
    return update(word, [value](T before) { return value < before ? value : before; });
  } else {
    using Number = typename NumberOf<T>::Type;
    return static_cast<T>(WordAccess::min(reinterpret_cast<Number*>(word), static_cast<Number>(value)));
  }
}
template <typename T>
BRANT_DEVICE_CODE T greatest(T* word, T value) {
  if constexpr (kIsFloating<T>) {
    return update(word, [value](T before) { return before < value ? value : before; });
  } else {
    using Number = typename NumberOf<T>::Type;
    return static_cast<T>(WordAccess::max(reinterpret_cast<Number*>(word), static_cast<Number>(value)));
  }
}

/// What was there before; of a store, 0. An acquire and a release. The operation exists for T, and the word is aligned.
/// Signed numbers are added as unsigned ones, which wrap around.
template <typename T>
BRANT_DEVICE_CODE T perform(T* word, AtomicOp operation, T operand, T expected) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "brant: atomics work on words of 4 or 8 bytes");
  Bits<T>* const bits = reinterpret_cast<Bits<T>*>(word);
  const Bits<T> value = same_bits<Bits<T>>(operand);
  switch (operation) {
    case AtomicOp::load: return same_bits<T>(WordAccess::load(bits));
    case AtomicOp::store: WordAccess::store(bits, value); return T{};
    case AtomicOp::swap: return same_bits<T>(WordAccess::swap(bits, value));
    case AtomicOp::compare_swap:
      return same_bits<T>(WordAccess::compare_swap(bits, same_bits<Bits<T>>(expected), value));
    case AtomicOp::add:
      if constexpr (kIsFloating<T>) {
        return WordAccess::add(word, operand);
      } else {
        return same_bits<T>(WordAccess::add(bits, value));
      }
    case AtomicOp::min: return least(word, operand);
    case AtomicOp::max: return greatest(word, operand);
    // Of floating numbers these do not exist.
    case AtomicOp::bit_and: return same_bits<T>(WordAccess::bit_and(bits, value));
    case AtomicOp::bit_or: return same_bits<T>(WordAccess::bit_or(bits, value));
    case AtomicOp::bit_xor: return same_bits<T>(WordAccess::bit_xor(bits, value));
  }
  return T{};
}

/// Without any order.
template <typename T>
BRANT_DEVICE_CODE T add_relaxed(T* word, T value) {
  if constexpr (kIsFloating<T>) {
    return RelaxedAccess::add(word, value);
  } else {
    return same_bits<T>(RelaxedAccess::add(reinterpret_cast<Bits<T>*>(word), same_bits<Bits<T>>(value)));
  }
}

}  // namespace brant::words
