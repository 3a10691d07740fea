#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace brant::mpi {

/// What of a type's bounds enters those of types made of it: lowest displacement and upper end, without what is added
/// so that the next item is aligned, and whether they were set by a call. The standard lets bounds that were set win
/// over those that were not.
struct Bounds {
  bool any = false;  ///< False: the type has neither elements nor set bounds.
  bool set = false;
  std::int64_t low = 0;
  std::int64_t high = 0;

  void add(const Bounds& other) noexcept {
    if (!other.any || (any && set && !other.set)) return;
    if (!any || (other.set && !set)) {
      *this = other;
      return;
    }
    low = std::min(low, other.low);
    high = std::max(high, other.high);
  }

  /// Of `count` such items at distances of `stride`. None: 63 bits do not hold them.
  [[nodiscard]] std::optional<Bounds> repeated(std::int64_t count, std::int64_t stride) const noexcept {
    if (count == 0 || !any) return Bounds{};
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(count - 1, stride, &reach)) return std::nullopt;
    Bounds all = *this;
    if (__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &all.low : &all.high)) return std::nullopt;
    return all;
  }
  [[nodiscard]] std::optional<Bounds> moved(std::int64_t by) const noexcept {
    Bounds there = *this;
    if (any && (__builtin_add_overflow(low, by, &there.low) || __builtin_add_overflow(high, by, &there.high))) {
      return std::nullopt;
    }
    return there;
  }
};

}  // namespace brant::mpi
