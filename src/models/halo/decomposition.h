#pragma once

#include <array>
#include <cstdint>
#include <optional>

/// How a grid is cut into blocks, and which block lies beside which. Pure functions.
namespace brant::halo {

inline constexpr std::size_t kDims = 3;
/// Cells along x, y and z; x is the fastest in memory.
using Cells = std::array<std::int64_t, kDims>;
/// A step to a neighbour: -1, 0 or 1 in each dimension.
using Offset = std::array<int, kDims>;

/// Cells from `low` to `high`, which is the first one outside.
struct Box {
  Cells low{};
  Cells high{};

  [[nodiscard]] std::int64_t cells() const noexcept {
    return (high[0] - low[0]) * (high[1] - low[1]) * (high[2] - low[2]);
  }
  bool operator==(const Box&) const = default;
};

/// A grid cut into one array per block, with `ghost` cells around it on every side. A grid of two dimensions has one
/// cell, one block and no ghosts along z. The rules are those of LLNL's Comb: of N cells in D parts, cut c is at
/// c * (N / D) + min(c, N % D), and the last dimension is the fastest in the numbering of blocks.
struct Decomposition {
  Cells grid{1, 1, 1};
  std::array<int, kDims> divide{1, 1, 1};
  std::array<bool, kDims> periodic{};
  Cells ghost{};

  /// Throws invalid_argument: sizes below one, ghosts below zero, more than 2^31 - 1 blocks or 2^48 cells, or ghosts
  /// wider than the narrowest block, whose owner could then not fill them.
  void require_sense() const;

  [[nodiscard]] int blocks() const noexcept { return divide[0] * divide[1] * divide[2]; }
  [[nodiscard]] std::array<int, kDims> coordinates(int block) const noexcept;
  [[nodiscard]] int block_at(const std::array<int, kDims>& place) const noexcept;
  /// The cells of a block, in the grid.
  [[nodiscard]] Box cells_of(int block) const noexcept;
  /// The cells of its array, ghosts included.
  [[nodiscard]] Cells array_of(int block) const noexcept;
  /// What a block owns, in its array: its cells, and the ghosts beyond an edge of the grid that is not periodic.
  [[nodiscard]] Box owned_by(int block) const noexcept;
  /// The block one step further; nothing beyond an edge. It may be the block itself.
  [[nodiscard]] std::optional<int> neighbour(int block, const Offset& offset) const noexcept;
};

}  // namespace brant::halo
