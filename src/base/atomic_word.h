#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "brant/base/atomic.h"
#include "brant/base/simt.h"

namespace brant {

// One implementation for CPUs and GPUs: what differs is how a word is accessed. An Access offers, of words of 32 and 64
// bits, load, store, exchange, compare_exchange, add, bit_and, bit_or and bit_xor; and add, min and max of numbers.
// Each but store returns the value before. Each is an acquire and a release.

/// The value of low bits, and back. (Kernels cannot call std::bit_cast.)
template <typename To>
BRANT_DEVICE_CODE To word_cast(std::uint64_t bits) noexcept {
  To value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
template <typename From>
BRANT_DEVICE_CODE std::uint64_t word_bits(From value) noexcept {
  std::uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(value));
  return bits;
}

template <typename T>
using WordBits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// For what no instruction does: tries until nobody came in between.
template <typename Access, typename T, typename Next>
BRANT_DEVICE_CODE T update_word(T* word, const Next& next) noexcept {
  using Bits = WordBits<T>;
  auto* const bits = reinterpret_cast<Bits*>(word);
  Bits seen = Access::load(bits);
  for (;;) {
    const T before = word_cast<T>(seen);
    const Bits found = Access::compare_exchange(bits, seen, static_cast<Bits>(word_bits<T>(next(before))));
    if (found == seen) return before;
    seen = found;
  }
}

template <typename Access, typename T>
BRANT_DEVICE_CODE std::uint64_t perform_on(void* word, const Atomic& what) noexcept {
  using Bits = WordBits<T>;
  auto* const bits = static_cast<Bits*>(word);
  auto* const number = static_cast<T*>(word);
  const Bits operand = static_cast<Bits>(what.operand);
  const T value = word_cast<T>(what.operand);
  switch (what.operation) {
    case AtomicOp::load: return Access::load(bits);
    case AtomicOp::store: Access::store(bits, operand); return 0;
    case AtomicOp::swap: return Access::exchange(bits, operand);
    case AtomicOp::compare_swap: return Access::compare_exchange(bits, static_cast<Bits>(what.expected), operand);
    case AtomicOp::add:
      if constexpr (std::is_floating_point_v<T>) {
        return word_bits<T>(Access::add(number, value));
      } else {
        return Access::add(bits, operand);  // signed numbers wrap as these do
      }
    case AtomicOp::min: return word_bits<T>(Access::min(number, value));
    case AtomicOp::max: return word_bits<T>(Access::max(number, value));
    case AtomicOp::bit_and: return Access::bit_and(bits, operand);
    case AtomicOp::bit_or: return Access::bit_or(bits, operand);
    case AtomicOp::bit_xor: return Access::bit_xor(bits, operand);
  }
  return 0;
}

/// Performs an operation that exists on a word that is aligned. Returns the bits of the value before; 0 of a store.
template <typename Access>
BRANT_DEVICE_CODE std::uint64_t perform_atomic(void* word, const Atomic& what) noexcept {
  switch (what.type) {
    case AtomicType::i32: return perform_on<Access, std::int32_t>(word, what);
    case AtomicType::u32: return perform_on<Access, std::uint32_t>(word, what);
    case AtomicType::i64: return perform_on<Access, std::int64_t>(word, what);
    case AtomicType::u64: return perform_on<Access, std::uint64_t>(word, what);
    case AtomicType::f32: return perform_on<Access, float>(word, what);
    case AtomicType::f64: return perform_on<Access, double>(word, what);
  }
  return 0;
}

#ifndef __CUDACC__

/// The CPU's way, which all processes that map the memory share.
struct CpuAccess {
  template <typename T>
  static T load(const T* word) noexcept {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
  }
  template <typename T>
  static void store(T* word, T value) noexcept {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
  }
  template <typename T>
  static T exchange(T* word, T value) noexcept {
    return __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);
  }
  template <typename T>
  static T compare_exchange(T* word, T expected, T desired) noexcept {
    __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return expected;
  }
  template <typename T>
  static T add(T* word, T value) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
      return update_word<CpuAccess>(word, [value](T before) { return before + value; });
    } else {
      return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
    }
  }
  template <typename T>
  static T min(T* word, T value) noexcept {
    return update_word<CpuAccess>(word, [value](T before) { return value < before ? value : before; });
  }
  template <typename T>
  static T max(T* word, T value) noexcept {
    return update_word<CpuAccess>(word, [value](T before) { return before < value ? value : before; });
  }
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

inline std::uint64_t perform_atomic_by_cpu(void* word, const Atomic& what) noexcept {
  return perform_atomic<CpuAccess>(word, what);
}

#endif

}  // namespace brant
