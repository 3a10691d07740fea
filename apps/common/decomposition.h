#pragma once

#include <array>
#include <optional>
#include <string>

#include "cells.h"

/// How a global grid is cut into one block per process. Pure functions.
namespace apps {

/// The sides of a block. The axis is side / 2; odd sides look towards higher coordinates.
enum Side : int { x_low, x_high, y_low, y_high, z_low, z_high };
inline constexpr int kSides = 6;

inline constexpr std::int64_t Extent::* kAxes[] = {&Extent::x, &Extent::y, &Extent::z};
constexpr int axis_of(int side) noexcept { return side / 2; }
constexpr bool is_high(int side) noexcept { return side % 2 == 1; }

/// Cells of a box; 0 if any side is 0. Needs a box of less than 2^63 cells.
constexpr std::int64_t volume(const Extent& extent) noexcept { return extent.x * extent.y * extent.z; }

/// "1536 x 1536 x 3072".
std::string to_text(const Extent& extent);

/// A grid of processes: rank = z + blocks.z * (y + blocks.y * x), as a HaloExchange numbers them.
struct Decomposition {
  Extent global;
  Extent blocks;

  [[nodiscard]] int processes() const noexcept { return static_cast<int>(volume(blocks)); }
  /// Place of a rank in the grid of processes.
  [[nodiscard]] Cell coordinates(int rank) const noexcept;
  /// The cells of a rank. Blocks differ by at most one cell along each axis.
  [[nodiscard]] Box block(int rank) const noexcept;
  /// Who owns the block beyond a side; nothing at the edge of the domain.
  [[nodiscard]] std::optional<int> neighbour(int rank, int side) const noexcept;
};

/// Cuts `global` into `processes` blocks with the least total surface between them; of equals the one that cuts z, then
/// y, since those faces are cheaper to copy. Throws invalid_argument if there is no way to give every process a cell.
Decomposition decompose(const Extent& global, int processes);

/// `has_neighbour[side]` says where ghost cells come from another process.
Split split_block(const Extent& cells, const std::array<bool, kSides>& has_neighbour) noexcept;

}  // namespace apps
