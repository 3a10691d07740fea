#include "models/halo/decomposition.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::halo {
namespace {

constexpr char kNames[kDims] = {'x', 'y', 'z'};
constexpr std::int64_t kCellsMax = std::int64_t{1} << 48;

std::int64_t cut(std::int64_t cells, int parts, int index) noexcept {
  return index * (cells / parts) + std::min<std::int64_t>(index, cells % parts);
}

}  // namespace

void Decomposition::require_sense() const {
  std::int64_t blocks = 1;
  std::int64_t cells = 1;
  for (std::size_t d = 0; d < kDims; ++d) {
    if (grid[d] < 1 || divide[d] < 1 || ghost[d] < 0) {
      throw Error(
          Status::invalid_argument,
          fmt::format("halo: along {} a grid of {} cells in {} parts with {} ghost cells: cells and parts are at "
                      "least 1, ghost cells at least 0",
                      kNames[d], grid[d], divide[d], ghost[d]));
    }
    const bool has_neighbours = divide[d] > 1 || periodic[d];
    if (const std::int64_t narrowest = grid[d] / divide[d]; narrowest < 1 || (has_neighbours && ghost[d] > narrowest)) {
      throw Error(
          Status::invalid_argument,
          fmt::format("halo: along {} {} cells in {} parts leave {} for the narrowest block, and the ghosts are "
                      "{} wide: make the grid larger, or the parts or the ghosts fewer",
                      kNames[d], grid[d], divide[d], narrowest, ghost[d]));
    }
    if (std::max(grid[d], ghost[d]) > kCellsMax || grid[d] + 2 * ghost[d] > kCellsMax / cells) {
      throw Error(Status::invalid_argument,
                  fmt::format("halo: a grid of {} x {} x {} cells: use at most {} in all, ghosts included", grid[0],
                              grid[1], grid[2], kCellsMax));
    }
    cells *= grid[d] + 2 * ghost[d];
    blocks *= divide[d];
    if (blocks > std::numeric_limits<int>::max()) {
      throw Error(Status::invalid_argument, "halo: more than 2147483647 blocks: divide the grid into fewer parts");
    }
  }
}

std::array<int, kDims> Decomposition::coordinates(int block) const noexcept {
  return {block / (divide[1] * divide[2]), block / divide[2] % divide[1], block % divide[2]};
}

int Decomposition::block_at(const std::array<int, kDims>& place) const noexcept {
  return (place[0] * divide[1] + place[1]) * divide[2] + place[2];
}

Box Decomposition::cells_of(int block) const noexcept {
  const auto place = coordinates(block);
  Box box;
  for (std::size_t d = 0; d < kDims; ++d) {
    box.low[d] = cut(grid[d], divide[d], place[d]);
    box.high[d] = cut(grid[d], divide[d], place[d] + 1);
  }
  return box;
}

Cells Decomposition::array_of(int block) const noexcept {
  const Box cells = cells_of(block);
  Cells array;
  for (std::size_t d = 0; d < kDims; ++d) array[d] = cells.high[d] - cells.low[d] + 2 * ghost[d];
  return array;
}

Box Decomposition::owned_by(int block) const noexcept {
  const auto place = coordinates(block);
  const Cells array = array_of(block);
  Box owned;
  for (std::size_t d = 0; d < kDims; ++d) {
    const bool at_low_edge = !periodic[d] && place[d] == 0;
    const bool at_high_edge = !periodic[d] && place[d] == divide[d] - 1;
    owned.low[d] = at_low_edge ? 0 : ghost[d];
    owned.high[d] = at_high_edge ? array[d] : array[d] - ghost[d];
  }
  return owned;
}

std::optional<int> Decomposition::neighbour(int block, const Offset& offset) const noexcept {
  auto place = coordinates(block);
  for (std::size_t d = 0; d < kDims; ++d) {
    place[d] += offset[d];
    if (place[d] >= 0 && place[d] < divide[d]) continue;
    if (!periodic[d]) return std::nullopt;
    place[d] = (place[d] + divide[d]) % divide[d];
  }
  return block_at(place);
}

}  // namespace brant::halo
