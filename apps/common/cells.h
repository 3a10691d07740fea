#pragma once

#include <cstdint>

/// Boxes of cells, for host code and GPU kernels: compiled by g++ and by nvcc, so everything is plain and trivially
/// copyable.

#if defined(__CUDACC__)
#define APPS_SHARED __host__ __device__ inline
#else
#define APPS_SHARED inline
#endif

namespace apps {

/// Something along each axis: a number of cells, or the coordinates of one.
struct Extent {
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t z = 0;

  constexpr bool operator==(const Extent&) const noexcept = default;
};
using Cell = Extent;

/// The cells from `low` up to, not including, `high`.
struct Box {
  Cell low;
  Cell high;

  constexpr bool operator==(const Box&) const noexcept = default;
};

APPS_SHARED bool is_empty(const Box& box) noexcept {
  return box.low.x >= box.high.x || box.low.y >= box.high.y || box.low.z >= box.high.z;
}

APPS_SHARED Extent extent_of(const Box& box) noexcept {
  return {box.high.x - box.low.x, box.high.y - box.low.y, box.high.z - box.low.z};
}

/// The cells that need ghost cells of a neighbour: disjoint boxes, one for each neighbour at most.
struct Shell {
  int count = 0;
  Box box[6];
};

/// A block cut in two: `interior` needs no ghost cells of neighbours; `shell` does.
struct Split {
  Box interior;  ///< May be empty.
  Shell shell;
};

/// Of so many, each with so many at most.
constexpr unsigned pieces(std::int64_t count, std::int64_t each) noexcept {
  return static_cast<unsigned>((count + each - 1) / each);
}

/// A field to begin with: noise in [0, 1) from the global position, so that a cell that went to a wrong place is
/// noticed.
APPS_SHARED double initial_value(std::int64_t x, std::int64_t y, std::int64_t z) noexcept {
  std::uint64_t mixed = static_cast<std::uint64_t>(x) * 0x9e3779b97f4a7c15ull;
  mixed ^= static_cast<std::uint64_t>(y) * 0xc2b2ae3d27d4eb4full + (mixed >> 29);
  mixed ^= static_cast<std::uint64_t>(z) * 0x165667b19e3779f9ull + (mixed >> 31);
  mixed = (mixed ^ (mixed >> 33)) * 0xff51afd7ed558ccdull;
  return static_cast<double>((mixed ^ (mixed >> 33)) >> 11) * 0x1.0p-53;
}

}  // namespace apps
