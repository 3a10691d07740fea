#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "brant/base/api.h"

namespace brant {

/// The elements that a collective combines. Those of two parts are a value and a place, in this order and without
/// padding, as MPI's pair types.
enum class DataType : std::uint8_t {
  bytes = 0,  ///< Nothing is known of them: moved, and combined by a function of the program only.
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f16,
  bf16,
  f32,
  f64,
  boolean,  ///< One byte, 0 or 1.
  i32_i32,
  i64_i64,
  f32_i32,
  f64_i64,
};
inline constexpr unsigned kDataTypeCount = 18;

/// How two elements become one. Members are combined in the order of their ranks, (((0 + 1) + 2) + ...), by every
/// algorithm: a sum of floats has the same bits at all members and in every run of one layout of the team. f16 and bf16
/// are summed as f32 and rounded once. Integers wrap around.
enum class ReduceOp : std::uint8_t {
  none = 0,
  sum,
  prod,
  min,  ///< As `b < a ? b : a`, which says what becomes of a NaN.
  max,
  average,  ///< The sum, divided by the number of members; integers towards zero.
  logical_and,
  logical_or,
  logical_xor,
  bit_and,
  bit_or,
  bit_xor,
  min_place,  ///< Of pairs: the smallest value, and of equal ones the smallest place.
  max_place,
  user,
};
inline constexpr unsigned kReduceOpCount = 15;

/// A function of the program that combines elements of any size, on the host. It runs on the worker's thread, inside
/// progress or the blocking call, and must neither wait nor throw. It must be associative; members are always combined
/// in the order of their ranks, so that it need not be commutative.
struct UserReduce {
  /// `accumulated[i]` becomes the combination of itself, which is of lower ranks, and `next[i]`, for `count` elements.
  /// Both are aligned to 16 bytes at least where the elements' size is a multiple of 16, else to nothing.
  void (*combine)(void* context, void* accumulated, const void* next, std::uint64_t count) noexcept = nullptr;
  void* context = nullptr;
  std::size_t element_bytes = 0;  ///< 1 to 4096.
};

/// Bytes of one element.
BRANT_API std::size_t data_type_bytes(DataType type) noexcept;
/// "f32", "bytes", "f64_i64".
BRANT_API std::string_view data_type_name(DataType type) noexcept;
/// "sum", "min_place".
BRANT_API std::string_view reduce_op_name(ReduceOp op) noexcept;
/// Whether elements of this type can be combined so; `user` and any type: yes.
BRANT_API bool can_reduce(DataType type, ReduceOp op) noexcept;

namespace detail {
template <typename T>
consteval DataType data_type_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return DataType::boolean;
  } else if constexpr (std::is_integral_v<T>) {
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return is_signed ? DataType::i8 : DataType::u8;
    if constexpr (sizeof(T) == 2) return is_signed ? DataType::i16 : DataType::u16;
    if constexpr (sizeof(T) == 4) return is_signed ? DataType::i32 : DataType::u32;
    if constexpr (sizeof(T) == 8) return is_signed ? DataType::i64 : DataType::u64;
  } else if constexpr (std::is_same_v<T, float>) {
    return DataType::f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DataType::f64;
  }
  return DataType::bytes;
}
}  // namespace detail

/// What collectives know of elements of type T.
template <typename T>
inline constexpr DataType kDataTypeOf = detail::data_type_of<std::remove_cv_t<T>>();

}  // namespace brant
