#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "brant/coll/reduce_op.h"
#include "ops/coll/half.h"

/// How single elements are combined, for the CPU and for kernels: the same bits.
namespace brant::coll {

/// A sort of element is stored as `Stored`, and combined as `Acc`.
template <typename T>
struct Plain {
  using Stored = T;
  using Acc = T;
  BRANT_DEVICE_CODE static Acc load(Stored value) { return value; }
  BRANT_DEVICE_CODE static Stored store(Acc value) { return value; }
};
struct Half {
  using Stored = std::uint16_t;
  using Acc = float;
  BRANT_DEVICE_CODE static Acc load(Stored value) { return from_f16(value); }
  BRANT_DEVICE_CODE static Stored store(Acc value) { return to_f16(value); }
};
struct Brain {
  using Stored = std::uint16_t;
  using Acc = float;
  BRANT_DEVICE_CODE static Acc load(Stored value) { return from_bf16(value); }
  BRANT_DEVICE_CODE static Stored store(Acc value) { return to_bf16(value); }
};

/// By the number of members, which a small integer may not hold.
template <typename Acc>
BRANT_DEVICE_CODE Acc divided(Acc total, std::size_t members) {
  if constexpr (std::is_floating_point_v<Acc>) {
    return total / static_cast<Acc>(members);
  } else if constexpr (std::is_signed_v<Acc>) {
    return static_cast<Acc>(std::int64_t{total} / static_cast<std::int64_t>(members));
  } else {
    return static_cast<Acc>(std::uint64_t{total} / members);
  }
}

/// Sums and products of integers wrap around, which only unsigned ones of full width do.
template <typename T>
using Wrapping = std::conditional_t<(sizeof(T) < sizeof(std::uint32_t)), std::uint32_t, std::make_unsigned_t<T>>;

struct Sum {
  template <typename T>
  BRANT_DEVICE_CODE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    } else {
      return a + b;
    }
  }
};
struct Product {
  template <typename T>
  BRANT_DEVICE_CODE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
    } else {
      return a * b;
    }
  }
};
struct Least {
  template <typename T>
  BRANT_DEVICE_CODE T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Greatest {
  template <typename T>
  BRANT_DEVICE_CODE T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct LogicalAnd {
  template <typename T>
  BRANT_DEVICE_CODE T operator()(T a, T b) const {
    return static_cast<T>(a != 0 && b != 0);
  }
};
struct LogicalOr {
  template <typename T>
  BRANT_DEVICE_CODE T operator()(T a, T b) const {
    return static_cast<T>(a != 0 || b != 0);
  }
};
struct LogicalXor {
  template <typename T>
  BRANT_DEVICE_CODE T operator()(T a, T b) const {
    return static_cast<T>((a != 0) != (b != 0));
  }
};
struct BitAnd {
  template <typename T>
  BRANT_DEVICE_CODE T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <typename T>
  BRANT_DEVICE_CODE T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <typename T>
  BRANT_DEVICE_CODE T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

/// Calls `visit` with what combines two elements of the sort. False: nothing does.
template <typename Sort, typename Visit>
BRANT_DEVICE_CODE bool visit_op(ReduceOp op, Visit&& visit) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::average: visit(Sum{}); return true;
    case ReduceOp::prod: visit(Product{}); return true;
    case ReduceOp::min: visit(Least{}); return true;
    case ReduceOp::max: visit(Greatest{}); return true;
    default: break;
  }
  if constexpr (std::is_integral_v<typename Sort::Acc>) {
    switch (op) {
      case ReduceOp::logical_and: visit(LogicalAnd{}); return true;
      case ReduceOp::logical_or: visit(LogicalOr{}); return true;
      case ReduceOp::logical_xor: visit(LogicalXor{}); return true;
      case ReduceOp::bit_and: visit(BitAnd{}); return true;
      case ReduceOp::bit_or: visit(BitOr{}); return true;
      case ReduceOp::bit_xor: visit(BitXor{}); return true;
      default: break;
    }
  }
  return false;
}

/// Calls `visit` with the sort of a type of numbers. False: it is a type of bytes, or of pairs.
template <typename Visit>
BRANT_DEVICE_CODE bool visit_sort(DataType type, Visit&& visit) {
  switch (type) {
    case DataType::i8: visit(Plain<std::int8_t>{}); return true;
    case DataType::u8:
    case DataType::boolean: visit(Plain<std::uint8_t>{}); return true;
    case DataType::i16: visit(Plain<std::int16_t>{}); return true;
    case DataType::u16: visit(Plain<std::uint16_t>{}); return true;
    case DataType::i32: visit(Plain<std::int32_t>{}); return true;
    case DataType::u32: visit(Plain<std::uint32_t>{}); return true;
    case DataType::i64: visit(Plain<std::int64_t>{}); return true;
    case DataType::u64: visit(Plain<std::uint64_t>{}); return true;
    case DataType::f16: visit(Half{}); return true;
    case DataType::bf16: visit(Brain{}); return true;
    case DataType::f32: visit(Plain<float>{}); return true;
    case DataType::f64: visit(Plain<double>{}); return true;
    default: return false;
  }
}

}  // namespace brant::coll
