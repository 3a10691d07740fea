#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "brant/base/atomic.h"

/// What atomics are to do, by a model that knows nothing of how they are done.
namespace brant::test {

struct AtomicCase {
  std::string name;
  Atomic what;
  std::uint64_t before = 0;  ///< Bits that are there, and those that are to be there then.
  std::uint64_t after = 0;
};

inline const char* atomic_op_name(AtomicOp operation) {
  constexpr const char* kNames[] = {"load", "store", "swap",    "compare_swap", "add",
                                    "min",  "max",   "bit_and", "bit_or",       "bit_xor"};
  return kNames[static_cast<std::size_t>(operation)];
}
inline const char* atomic_type_name(AtomicType type) {
  constexpr const char* kNames[] = {"i32", "u32", "i64", "u64", "f32", "f64"};
  return kNames[static_cast<std::size_t>(type)];
}

/// Of whole numbers: computed in numbers that are wider, of which the low bits are kept.
template <typename T>
T expected_of_bits(AtomicOp operation, T before, T operand) {
  const __int128 wide = static_cast<__int128>(before) + static_cast<__int128>(operand);
  switch (operation) {
    case AtomicOp::add: return static_cast<T>(static_cast<std::uint64_t>(wide));
    case AtomicOp::bit_and: return static_cast<T>(before & operand);
    case AtomicOp::bit_or: return static_cast<T>(before | operand);
    case AtomicOp::bit_xor: return static_cast<T>(before ^ operand);
    default: return before;
  }
}

template <typename T>
std::uint64_t atomic_model(const Atomic& what, std::uint64_t bits) {
  const T before = atomic_value<T>(bits), operand = atomic_value<T>(what.operand);
  switch (what.operation) {
    case AtomicOp::load: return bits;
    case AtomicOp::store:
    case AtomicOp::swap: return what.operand;
    case AtomicOp::compare_swap: return bits == what.expected ? what.operand : bits;
    case AtomicOp::min: return operand < before ? what.operand : bits;
    case AtomicOp::max: return operand > before ? what.operand : bits;
    default:
      if constexpr (std::is_floating_point_v<T>) {
        return atomic_bits(static_cast<T>(before + operand));
      } else {
        return atomic_bits(expected_of_bits(what.operation, before, operand));
      }
  }
}

template <typename T>
void add_cases(std::vector<AtomicCase>& cases) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {T{0}, T{1}, T{7}, Limits::lowest(), Limits::max(), static_cast<T>(-T{3})};
  if constexpr (std::is_floating_point_v<T>) {
    for (const T value : {T(-0.0), T(1.5), T(-2.25), Limits::infinity(), Limits::quiet_NaN()}) values.push_back(value);
  }
  for (int index = 0; index <= static_cast<int>(AtomicOp::bit_xor); ++index) {
    const auto operation = static_cast<AtomicOp>(index);
    if (!atomic_exists(kAtomicTypeOf<T>, operation)) continue;
    for (const T before : values) {
      for (const T operand : values) {
        if constexpr (std::is_floating_point_v<T>) {
          // Which NaN a sum is that is none differs between processors.
          if (operation == AtomicOp::add && std::isnan(before + operand)) continue;
        }
        AtomicCase each;
        each.before = atomic_bits(before);
        for (const T expected : {before, T{7}}) {
          each.what = Atomic::of<T>(operation, operand, expected);
          each.after = atomic_model<T>(each.what, each.before);
          each.name = std::string(atomic_op_name(operation)) + " " + atomic_type_name(each.what.type) + " " +
                      std::to_string(operand) + " on " + std::to_string(before) + ", expected " +
                      std::to_string(expected);
          cases.push_back(each);
          if (operation != AtomicOp::compare_swap) break;
        }
      }
    }
  }
}

/// Every operation on every type, at the ends of what the types hold.
inline std::vector<AtomicCase> atomic_cases() {
  std::vector<AtomicCase> cases;
  add_cases<std::int32_t>(cases);
  add_cases<std::uint32_t>(cases);
  add_cases<std::int64_t>(cases);
  add_cases<std::uint64_t>(cases);
  add_cases<float>(cases);
  add_cases<double>(cases);
  return cases;
}

/// What the caller of one is told: the value before, but of a store.
inline std::uint64_t told_by(const AtomicCase& each) {
  return each.what.operation == AtomicOp::store ? 0 : each.before;
}

/// Pairs that do not exist, and numbers that are no operation or no type.
inline std::vector<Atomic> atomics_that_do_not_exist() {
  std::vector<Atomic> all;
  for (const AtomicType type : {AtomicType::f32, AtomicType::f64}) {
    for (const AtomicOp operation : {AtomicOp::bit_and, AtomicOp::bit_or, AtomicOp::bit_xor})
      all.push_back({operation, type, 1, 0});
  }
  all.push_back({static_cast<AtomicOp>(10), AtomicType::u64, 1, 0});
  all.push_back({AtomicOp::add, static_cast<AtomicType>(6), 1, 0});
  all.push_back({static_cast<AtomicOp>(255), static_cast<AtomicType>(255), 1, 0});
  return all;
}

}  // namespace brant::test
