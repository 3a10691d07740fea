#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "brant/base/atomic_op.h"

namespace brant {

/// Types whose values are words of an AtomicType.
template <typename T>
concept AtomicValue =
    (std::is_integral_v<T> && !std::is_same_v<std::remove_cv_t<T>, bool> && (sizeof(T) == 4 || sizeof(T) == 8)) ||
    std::is_same_v<T, float> || std::is_same_v<T, double>;

template <AtomicValue T>
inline constexpr AtomicType kAtomicTypeOf =
    std::is_floating_point_v<T> ? (sizeof(T) == 4 ? AtomicType::f32 : AtomicType::f64)
    : sizeof(T) == 4            ? (std::is_signed_v<T> ? AtomicType::i32 : AtomicType::u32)
                                : (std::is_signed_v<T> ? AtomicType::i64 : AtomicType::u64);

constexpr bool is_floating(AtomicType type) noexcept { return type == AtomicType::f32 || type == AtomicType::f64; }

constexpr std::size_t atomic_bytes(AtomicType type) noexcept {
  return type == AtomicType::i32 || type == AtomicType::u32 || type == AtomicType::f32 ? 4 : 8;
}

/// Whether there is such an operation on such words; false for numbers that are of neither enumeration.
constexpr bool atomic_exists(AtomicType type, AtomicOp operation) noexcept {
  return type <= AtomicType::f64 && operation <= (is_floating(type) ? AtomicOp::max : AtomicOp::bit_xor);
}

/// The bits of a value, in the low half if it has 4 bytes; and the value of such bits.
template <AtomicValue T>
constexpr std::uint64_t atomic_bits(T value) noexcept {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(value);
}
template <AtomicValue T>
constexpr T atomic_value(std::uint64_t bits) noexcept {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<T>(static_cast<Bits>(bits));
}

/// One atomic operation, wherever its word lies. Values are bits (`atomic_bits`).
struct Atomic {
  AtomicOp operation = AtomicOp::load;
  AtomicType type = AtomicType::u64;
  std::uint64_t operand = 0;   ///< Of a load nothing; of a compare_swap what is to be there.
  std::uint64_t expected = 0;  ///< Of a compare_swap alone: it stores if the value is this one.

  template <AtomicValue T>
  static constexpr Atomic of(AtomicOp operation, T operand = {}, T expected = {}) noexcept {
    return {operation, kAtomicTypeOf<T>, atomic_bits(operand), atomic_bits(expected)};
  }

  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return atomic_bytes(type); }
  [[nodiscard]] constexpr bool exists() const noexcept { return atomic_exists(type, operation); }
};

}  // namespace brant
