#pragma once

#include <cstdint>

#include "../common/cells.h"

/// The geometry and the arithmetic that host code and GPU kernels share: compiled by g++ and by nvcc, so everything is
/// plain and trivially copyable. Coordinates are cells; x is contiguous in memory.

namespace jacobi {

using namespace apps;

/// How a block with one layer of ghost cells lies in memory, in units of doubles. Cell (0,0,0) and the start of each
/// row are aligned to 128 bytes (a GPU's cache line); the ghost cells left and right of a row lie in the padding
/// between rows.
struct Layout {
  Extent cells;
  std::int64_t row = 0;      ///< Doubles from (x,y,z) to (x,y+1,z).
  std::int64_t plane = 0;    ///< Doubles from (x,y,z) to (x,y,z+1).
  std::int64_t origin = 0;   ///< Where (0,0,0) lies.
  std::int64_t doubles = 0;  ///< Size of the whole.

  /// Ghost cells have the coordinates -1 and `cells`.
  APPS_SHARED std::int64_t at(std::int64_t x, std::int64_t y, std::int64_t z) const noexcept {
    return origin + z * plane + y * row + x;
  }
  /// Doubles from the first to the last cell of one z plane, the padding in between included: one contiguous piece.
  APPS_SHARED std::int64_t plane_span() const noexcept { return (cells.y - 1) * row + cells.x; }
};

inline constexpr std::int64_t kRowAlignment = 16;

APPS_SHARED Layout make_layout(const Extent& cells) noexcept {
  Layout layout;
  layout.cells = cells;
  layout.row = (cells.x + 2 + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  layout.plane = layout.row * (cells.y + 2);
  layout.origin = layout.plane + layout.row + kRowAlignment;
  layout.doubles = layout.plane * (cells.z + 2) + 2 * kRowAlignment;
  return layout;
}

/// One x or y face, gathered into a contiguous buffer: element (a, b) of the buffer is the cell at first + a * step_a +
/// b * step_b.
struct PackedFace {
  std::int64_t first = 0;
  std::int64_t step_a = 0;
  std::int64_t step_b = 0;
  std::int64_t count_a = 0;
  std::int64_t count_b = 0;
  std::int64_t offset = 0;  ///< Where the face starts in the buffer, in doubles.
};

/// All faces that one kernel packs or unpacks: launching costs more than copying a small face.
struct PackedFaces {
  int count = 0;
  PackedFace face[4];
};

/// How many planes one block of a GPU's sweep walks along: short pieces keep neighbouring blocks, and so the caches,
/// together.
inline constexpr std::int64_t kPlanesPerPiece = 16;
/// And what else is the same for all of its sweeps: cells along x and y.
inline constexpr std::int64_t kCellsPerTile = 64;
inline constexpr std::int64_t kRowsPerTile = 8;

/// The seven-point Jacobi step: the mean of a cell and its six neighbours. The additions are in one fixed order and
/// nothing is of the form a*b+c, so no compiler can fuse or reorder anything: host and GPU agree to the last bit.
APPS_SHARED double average(double centre, double x_low, double x_high, double y_low, double y_high, double z_low,
                           double z_high) noexcept {
  return (centre + x_low + x_high + y_low + y_high + z_low + z_high) * (1.0 / 7.0);
}

/// Fixed values around the domain: 1 below (z = -1), 0 on the five other sides.
APPS_SHARED double boundary_value(std::int64_t z) noexcept { return z < 0 ? 1.0 : 0.0; }

/// Where a block stands in the whole.
struct Place {
  Cell first;  ///< Its cell (0,0,0) in global coordinates.
  Extent global;
};

/// What a cell of the block (ghost cells included) holds before the first iteration. Ghost cells that belong to a
/// neighbour start as NaN: an exchange that does not happen cannot go unnoticed.
APPS_SHARED double start_value(const Place& place, const Layout& layout, std::int64_t x, std::int64_t y,
                               std::int64_t z) noexcept {
  const std::int64_t gx = place.first.x + x;
  const std::int64_t gy = place.first.y + y;
  const std::int64_t gz = place.first.z + z;
  const Extent& global = place.global;
  if (gx < 0 || gy < 0 || gz < 0 || gx >= global.x || gy >= global.y || gz >= global.z) return boundary_value(gz);
  const Extent& cells = layout.cells;
  if (x < 0 || y < 0 || z < 0 || x >= cells.x || y >= cells.y || z >= cells.z) return __builtin_nan("");
  return initial_value(gx, gy, gz);
}

}  // namespace jacobi
