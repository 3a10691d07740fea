#pragma once

#include "ops/coll/device/stream_board.h"
#include "ops/coll/element.h"

/// Some words at a time, as kernels move and combine them.
namespace brant::coll {

/// 8 or 16 bytes.
template <unsigned N>
struct alignas(8 * N) Unit {
  static constexpr Word kBytes = Word{8} * N;
  Word word[N];
};

template <unsigned N>
BRANT_DEVICE_CODE bool is_aligned(const void* place) {
  return reinterpret_cast<Word>(place) % Unit<N>::kBytes == 0;
}

/// Where a unit of the program's memory lies: any place, or one that is known to be aligned and within its part.
enum class Place : std::uint8_t { any, whole };

/// The unit `i` of `bytes` of the program's memory; what lies behind them is 0. Nothing need be aligned.
template <unsigned N, Place kPlace>
BRANT_DEVICE_CODE Unit<N> read_unit(const std::byte* from, Word i, Word bytes) {
  const std::byte* const at = from + i * Unit<N>::kBytes;
  const Word left = bytes - i * Unit<N>::kBytes;
  Unit<N> unit{};
  if (kPlace == Place::whole || (left >= Unit<N>::kBytes && is_aligned<N>(at))) {
#ifdef __CUDACC__
    unit = *reinterpret_cast<const Unit<N>*>(at);
#else
    __builtin_memcpy(&unit, at, sizeof(unit));
#endif
    return unit;
  }
  if constexpr (kPlace == Place::any) {
    for (unsigned k = 0; k < Unit<N>::kBytes && k < left; ++k)
      unit.word[k / 8] |= static_cast<Word>(static_cast<std::uint8_t>(at[k])) << (8 * (k % 8));
  }
  return unit;
}
template <unsigned N, Place kPlace>
BRANT_DEVICE_CODE void write_unit(std::byte* to, Word i, Word bytes, const Unit<N>& unit) {
  std::byte* const at = to + i * Unit<N>::kBytes;
  const Word left = bytes - i * Unit<N>::kBytes;
  if (kPlace == Place::whole || (left >= Unit<N>::kBytes && is_aligned<N>(at))) {
#ifdef __CUDACC__
    *reinterpret_cast<Unit<N>*>(at) = unit;
#else
    __builtin_memcpy(at, &unit, sizeof(unit));
#endif
    return;
  }
  if constexpr (kPlace == Place::any) {
    for (unsigned k = 0; k < Unit<N>::kBytes && k < left; ++k)
      at[k] = static_cast<std::byte>(unit.word[k / 8] >> (8 * (k % 8)));
  }
}

/// The same of rooms, which are aligned, and which members write for each other: a head says that it is there. The CPU
/// and the model checker know such memory by its words.
template <unsigned N, typename Machine>
BRANT_DEVICE_CODE Unit<N> read_room([[maybe_unused]] Machine& machine, const std::byte* room, Word i) {
#ifdef __CUDACC__
  return reinterpret_cast<const Unit<N>*>(room)[i];
#else
  Unit<N> unit;
  const Word* const words = reinterpret_cast<const Word*>(room) + i * N;
  for (unsigned k = 0; k < N; ++k) unit.word[k] = machine.load_relaxed(&words[k]);
  return unit;
#endif
}
template <unsigned N, typename Machine>
BRANT_DEVICE_CODE void write_room([[maybe_unused]] Machine& machine, std::byte* room, Word i, const Unit<N>& unit) {
#ifdef __CUDACC__
  reinterpret_cast<Unit<N>*>(room)[i] = unit;
#else
  Word* const words = reinterpret_cast<Word*>(room) + i * N;
  for (unsigned k = 0; k < N; ++k) machine.store_relaxed(&words[k], unit.word[k]);
#endif
}

/// Sums and averages of floats: most of what programs combine.
BRANT_DEVICE_CODE bool is_float_sum(DataType type, ReduceOp op) {
  const bool floats = type == DataType::f32 || type == DataType::f64 || type == DataType::f16 || type == DataType::bf16;
  return floats && (op == ReduceOp::sum || op == ReduceOp::average);
}

/// The elements of some units, combined member by member. Type and op are looked at for each addition: a loop for each
/// of them would be a kernel of many times the size, which compilers take minutes for, and the memory is slower than
/// the look. kFloatSums: nothing else is there, so that many units at once make no large kernel either.
template <unsigned N, unsigned kUnits, bool kFloatSums>
class Totals {
 public:
  BRANT_DEVICE_CODE Totals(DataType type, ReduceOp op) : type_(type), op_(op) {}

  BRANT_DEVICE_CODE void begin(const Unit<N> (&units)[kUnits]) {
    for (unsigned u = 0; u < kUnits; ++u) is_short() ? widen(units[u], wide_[u]) : void(total_[u] = units[u]);
  }
  BRANT_DEVICE_CODE void add(const Unit<N> (&units)[kUnits]) {
    if (is_short()) {
      visit_op<Plain<float>>([&](auto combine) {
        for (unsigned u = 0; u < kUnits; ++u) {
          float next[kShort];
          widen(units[u], next);
          for (unsigned k = 0; k < kShort; ++k) wide_[u][k] = combine(wide_[u][k], next[k]);
        }
      });
      return;
    }
    visit_sort([&](auto sort) {
      using T = typename decltype(sort)::Stored;
      visit_op<decltype(sort)>([&](auto combine) {
        for (unsigned u = 0; u < kUnits; ++u) {
          auto all = bits_as<Elements<T>>(total_[u]);
          const auto next = bits_as<Elements<T>>(units[u]);
          for (unsigned k = 0; k < Elements<T>::kCount; ++k) all.of[k] = combine(all.of[k], next.of[k]);
          total_[u] = bits_as<Unit<N>>(all);
        }
      });
    });
  }
  /// `divisor`: for an average; 0: none.
  BRANT_DEVICE_CODE void end(unsigned divisor, Unit<N> (&results)[kUnits]) const {
    for (unsigned u = 0; u < kUnits; ++u) results[u] = is_short() ? narrowed(wide_[u], divisor) : total_[u];
    if (divisor == 0 || is_short()) return;
    visit_sort([&](auto sort) {
      using T = typename decltype(sort)::Stored;
      for (unsigned u = 0; u < kUnits; ++u) {
        auto all = bits_as<Elements<T>>(total_[u]);
        for (unsigned k = 0; k < Elements<T>::kCount; ++k) all.of[k] = divided(all.of[k], divisor);
        results[u] = bits_as<Unit<N>>(all);
      }
    });
  }

 private:
  static constexpr unsigned kShort = 4 * N;  ///< Floats of 16 bits.
  template <typename T>
  struct alignas(Unit<N>::kBytes) Elements {
    static constexpr unsigned kCount = Unit<N>::kBytes / sizeof(T);
    T of[kCount];
  };

  template <typename Visit>
  BRANT_DEVICE_CODE void visit_sort(Visit&& visit) const {
    if constexpr (kFloatSums) {
      type_ == DataType::f64 ? visit(Plain<double>{}) : visit(Plain<float>{});
    } else {
      coll::visit_sort(type_, [&](auto sort) {
        using Sort = decltype(sort);
        if constexpr (std::is_same_v<typename Sort::Stored, typename Sort::Acc>) visit(sort);
      });
    }
  }
  template <typename Sort, typename Visit>
  BRANT_DEVICE_CODE void visit_op(Visit&& visit) const {
    if constexpr (kFloatSums) {
      visit(Sum{});
    } else {
      coll::visit_op<Sort>(op_, visit);
    }
  }
  BRANT_DEVICE_CODE bool is_short() const { return type_ == DataType::f16 || type_ == DataType::bf16; }
  BRANT_DEVICE_CODE void widen(const Unit<N>& unit, float* wide) const {
    const auto all = bits_as<Elements<std::uint16_t>>(unit);
    for (unsigned k = 0; k < kShort; ++k) wide[k] = type_ == DataType::f16 ? from_f16(all.of[k]) : from_bf16(all.of[k]);
  }
  BRANT_DEVICE_CODE Unit<N> narrowed(const float* wide, unsigned divisor) const {
    Elements<std::uint16_t> all;
    for (unsigned k = 0; k < kShort; ++k) {
      const float value = divisor == 0 ? wide[k] : divided(wide[k], divisor);
      all.of[k] = type_ == DataType::f16 ? to_f16(value) : to_bf16(value);
    }
    return bits_as<Unit<N>>(all);
  }

  const DataType type_;
  const ReduceOp op_;
  Unit<N> total_[kUnits]{};
  float wide_[kUnits][kShort] = {};
};

}  // namespace brant::coll
