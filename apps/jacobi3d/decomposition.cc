#include "decomposition.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace jacobi {
namespace {

std::array<std::int64_t, 3> as_array(const Extent& extent) noexcept { return {extent.x, extent.y, extent.z}; }

/// First cell of part `index` of `parts`: the first (cells % parts) parts have one cell more.
std::int64_t part_begin(std::int64_t cells, std::int64_t parts, std::int64_t index) noexcept {
  return index * (cells / parts) + std::min(index, cells % parts);
}

/// Cells on the cuts between blocks. Floating point, because sizes come from users and must not overflow.
double cut_surface(const Extent& global, const Extent& blocks) noexcept {
  const auto x = static_cast<double>(global.x);
  const auto y = static_cast<double>(global.y);
  const auto z = static_cast<double>(global.z);
  return static_cast<double>(blocks.x - 1) * y * z + static_cast<double>(blocks.y - 1) * x * z +
         static_cast<double>(blocks.z - 1) * x * y;
}

/// The grid of processes with the least cost; nothing if `usable` accepts none.
std::optional<Extent> best_grid(int processes, const std::function<bool(const Extent&)>& usable,
                                const std::function<double(const Extent&)>& cost) {
  std::optional<Extent> best;
  const auto rank_of = [&](const Extent& blocks) { return std::tuple(cost(blocks), -blocks.z, -blocks.y); };
  for (std::int64_t x = 1; x <= processes; ++x) {
    if (processes % x != 0) continue;
    for (std::int64_t y = 1; y <= processes / x; ++y) {
      if (processes / x % y != 0) continue;
      const Extent blocks{x, y, processes / x / y};
      if (usable(blocks) && (!best || rank_of(blocks) < rank_of(*best))) best = blocks;
    }
  }
  return best;
}

}  // namespace

std::string to_text(const Extent& extent) { return fmt::format("{} x {} x {}", extent.x, extent.y, extent.z); }

Cell Decomposition::coordinates(int rank) const noexcept {
  return {rank % blocks.x, rank / blocks.x % blocks.y, rank / (blocks.x * blocks.y)};
}

Box Decomposition::block(int rank) const noexcept {
  const Cell at = coordinates(rank);
  return {{part_begin(global.x, blocks.x, at.x), part_begin(global.y, blocks.y, at.y),
           part_begin(global.z, blocks.z, at.z)},
          {part_begin(global.x, blocks.x, at.x + 1), part_begin(global.y, blocks.y, at.y + 1),
           part_begin(global.z, blocks.z, at.z + 1)}};
}

std::optional<int> Decomposition::neighbour(int rank, int side) const noexcept {
  const Cell at = coordinates(rank);
  const std::array<std::int64_t, 3> place = {at.x, at.y, at.z};
  const std::array<std::int64_t, 3> stride = {1, blocks.x, blocks.x * blocks.y};
  const auto axis = static_cast<std::size_t>(axis_of(side));
  const bool at_edge = place[axis] == (is_high(side) ? as_array(blocks)[axis] - 1 : 0);
  if (at_edge) return std::nullopt;
  return static_cast<int>(rank + (is_high(side) ? stride[axis] : -stride[axis]));
}

Decomposition decompose(const Extent& global, int processes) {
  const auto fits = [&](const Extent& blocks) {
    return blocks.x <= global.x && blocks.y <= global.y && blocks.z <= global.z;
  };
  const std::optional<Extent> blocks =
      best_grid(processes, fits, [&](const Extent& candidate) { return cut_surface(global, candidate); });
  if (!blocks) {
    throw brant::Error(
        brant::Status::invalid_argument,
        fmt::format(
            "a grid of {} cells cannot be cut into {} blocks so that every process gets at least one cell: use a "
            "larger --size or another number of processes",
            to_text(global), processes));
  }
  return {global, *blocks};
}

Decomposition decompose_per_process(const Extent& block, int processes) {
  const auto grown = [&](const Extent& blocks) {
    return Extent{block.x * blocks.x, block.y * blocks.y, block.z * blocks.z};
  };
  const std::optional<Extent> blocks = best_grid(
      processes, [](const Extent&) { return true; },
      [&](const Extent& candidate) { return cut_surface(grown(candidate), candidate); });
  return {grown(*blocks), *blocks};
}

Split split_block(const Extent& cells, const std::array<bool, kSides>& has_neighbour) noexcept {
  Split split;
  Box rest{{0, 0, 0}, {cells.x, cells.y, cells.z}};
  // z first: its slabs are whole planes, which are read and written fastest.
  for (int side = kSides - 1; side >= 0; --side) {
    if (!has_neighbour[static_cast<std::size_t>(side)] || is_empty(rest)) continue;
    Box slab = rest;
    std::int64_t Cell::* const axis = std::array{&Cell::x, &Cell::y, &Cell::z}[static_cast<std::size_t>(axis_of(side))];
    if (is_high(side)) {
      slab.low.*axis = --(rest.high.*axis);
    } else {
      slab.high.*axis = ++(rest.low.*axis);
    }
    split.shell.box[split.shell.count++] = slab;
  }
  split.interior = rest;
  return split;
}

}  // namespace jacobi
