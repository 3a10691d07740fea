#pragma once

#include <cstdint>

#include "brant/base/atomic.h"
#include "brant/pgas/device_window.cuh"

namespace brant::test {

template <typename T>
notify::Waited window_atomic_of(simt::CpuThread& machine, const pgas::DeviceWindow& window, unsigned member,
                                simt::Word offset, const Atomic& what, std::uint64_t& before) {
  T value{};
  const T operand = atomic_value<T>(what.operand);
  const notify::Waited waited =
      what.operation == AtomicOp::compare_swap
          ? pgas::compare_swap(machine, notify::KernelControl{}, window, member, offset, atomic_value<T>(what.expected),
                               operand, value)
          : pgas::fetch(machine, notify::KernelControl{}, window, member, offset, what.operation, operand, value);
  before = atomic_bits(value);
  return waited;
}

/// A kernel performs it in a window; `before` gets the bits that it is told.
inline notify::Waited window_atomic(simt::CpuThread& machine, const pgas::DeviceWindow& window, unsigned member,
                                    simt::Word offset, const Atomic& what, std::uint64_t& before) {
  switch (what.type) {
    case AtomicType::i32: return window_atomic_of<std::int32_t>(machine, window, member, offset, what, before);
    case AtomicType::u32: return window_atomic_of<std::uint32_t>(machine, window, member, offset, what, before);
    case AtomicType::i64: return window_atomic_of<std::int64_t>(machine, window, member, offset, what, before);
    case AtomicType::u64: return window_atomic_of<std::uint64_t>(machine, window, member, offset, what, before);
    case AtomicType::f32: return window_atomic_of<float>(machine, window, member, offset, what, before);
    case AtomicType::f64: return window_atomic_of<double>(machine, window, member, offset, what, before);
  }
  return notify::Waited::aborted;
}

}  // namespace brant::test
