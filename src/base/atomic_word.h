#pragma once

#include <cstdint>

#include "brant/base/atomic.h"
#include "brant/base/word_atomics.cuh"

namespace brant {

template <typename T>
BRANT_DEVICE_CODE std::uint64_t perform_atomic_on(void* word, const Atomic& what) noexcept {
  using Bits = words::Bits<T>;
  const T operand = words::same_bits<T>(static_cast<Bits>(what.operand));
  const T expected = words::same_bits<T>(static_cast<Bits>(what.expected));
  return words::same_bits<Bits>(words::perform<T>(static_cast<T*>(word), what.operation, operand, expected));
}

/// Performs an operation that exists on a word that is aligned, on a CPU or in a kernel. Returns the bits of the value
/// before; 0 of a store.
BRANT_DEVICE_CODE std::uint64_t perform_atomic(void* word, const Atomic& what) noexcept {
  switch (what.type) {
    case AtomicType::i32: return perform_atomic_on<std::int32_t>(word, what);
    case AtomicType::u32: return perform_atomic_on<std::uint32_t>(word, what);
    case AtomicType::i64: return perform_atomic_on<std::int64_t>(word, what);
    case AtomicType::u64: return perform_atomic_on<std::uint64_t>(word, what);
    case AtomicType::f32: return perform_atomic_on<float>(word, what);
    case AtomicType::f64: return perform_atomic_on<double>(word, what);
  }
  return 0;
}

}  // namespace brant
