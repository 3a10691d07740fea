#include "decomposition.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace apps {
namespace {

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

}  // namespace

std::string to_text(const Extent& extent) { return fmt::format("{} x {} x {}", extent.x, extent.y, extent.z); }

Cell Decomposition::coordinates(int rank) const noexcept {
  return {rank / (blocks.z * blocks.y), rank / blocks.z % blocks.y, rank % blocks.z};
}

Box Decomposition::block(int rank) const noexcept {
  const auto corner = [&](const Cell& at) {
    return Cell{part_begin(global.x, blocks.x, at.x), part_begin(global.y, blocks.y, at.y),
                part_begin(global.z, blocks.z, at.z)};
  };
  const Cell at = coordinates(rank);
  return {corner(at), corner({at.x + 1, at.y + 1, at.z + 1})};
}

std::optional<int> Decomposition::neighbour(int rank, int side) const noexcept {
  const auto axis = kAxes[axis_of(side)];
  const std::int64_t stride[] = {blocks.z * blocks.y, blocks.z, 1};
  if (coordinates(rank).*axis == (is_high(side) ? blocks.*axis - 1 : 0)) return std::nullopt;
  return static_cast<int>(rank + (is_high(side) ? 1 : -1) * stride[axis_of(side)]);
}

Decomposition decompose(const Extent& global, int processes) {
  std::optional<Extent> best;
  const auto cost = [&](const Extent& blocks) { return std::tuple(cut_surface(global, blocks), -blocks.z, -blocks.y); };
  for (std::int64_t x = 1; x <= processes; ++x) {
    for (std::int64_t y = 1; y <= processes / x; ++y) {
      const Extent blocks{x, y, processes / x / y};
      const bool usable = volume(blocks) == processes && x <= global.x && y <= global.y && blocks.z <= global.z;
      if (usable && (!best || cost(blocks) < cost(*best))) best = blocks;
    }
  }
  if (best) return {global, *best};
  throw brant::Error(
      brant::Status::invalid_argument,
      fmt::format("a grid of {} cells cannot be cut into {} blocks so that every process gets at least one cell: use a "
                  "larger --size or another number of processes",
                  to_text(global), processes));
}

Split split_block(const Extent& cells, const std::array<bool, kSides>& has_neighbour) noexcept {
  Split split;
  Box rest{{0, 0, 0}, cells};
  // z first: its slabs are whole planes, which are read and written fastest.
  for (int side = kSides - 1; side >= 0; --side) {
    if (!has_neighbour[static_cast<std::size_t>(side)] || is_empty(rest)) continue;
    Box slab = rest;
    const auto axis = kAxes[axis_of(side)];
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

}  // namespace apps
