#include "host_kernels.h"

#include <algorithm>

namespace heat::host {
namespace {

/// Cells of a row with neighbours all around.
void conduct_row(double* __restrict next, const double* __restrict field, std::int64_t row, std::int64_t plane,
                 const Body body, std::int64_t count) noexcept {
  for (std::int64_t x = 0; x < count; ++x) next[x] = conducted(field + x, row, plane, body);
}

}  // namespace

void pack(double* faces, const double* field, Body body) noexcept {
  for (int side = 0; side < kFaces; ++side) {
    if (body.faces.open(side)) continue;
    double* const face = faces + body.faces.offset[side];
    const std::int64_t cells = face_cells(body.cells, side);
    for (std::int64_t i = 0; i < cells; ++i) face[i] = field[face_cell(body.cells, side, i)];
  }
}

void conduct(double* next, const double* field, const double* ghosts, Body body, Box box) noexcept {
  const Extent& n = body.cells;
  const auto at_edge = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    next[x + n.x * (y + n.y * z)] = conducted_at_edge(field, ghosts, body, {x, y, z});
  };
  for (std::int64_t z = box.low.z; z < box.high.z; ++z) {
    for (std::int64_t y = box.low.y; y < box.high.y; ++y) {
      const bool inside = y > 0 && y + 1 < n.y && z > 0 && z + 1 < n.z;
      const std::int64_t first = inside ? std::clamp<std::int64_t>(1, box.low.x, box.high.x) : box.high.x;
      const std::int64_t last = std::max(std::min(n.x - 1, box.high.x), first);
      for (std::int64_t x = box.low.x; x < first; ++x) at_edge(x, y, z);
      const std::int64_t at = first + n.x * (y + n.y * z);
      conduct_row(next + at, field + at, n.x, n.x * n.y, body, last - first);
      for (std::int64_t x = last; x < box.high.x; ++x) at_edge(x, y, z);
    }
  }
}

void conduct_shell(double* next, const double* field, const double* ghosts, Body body, Shell shell) noexcept {
  for (int index = 0; index < shell.count; ++index) conduct(next, field, ghosts, body, shell.box[index]);
}

void add(double* sums, const double* field, std::int64_t cells) noexcept {
  std::fill_n(sums, kSums, 0.0);
  for (std::int64_t first = 0; first < cells; first += kSums) {
    const std::int64_t count = std::min(kSums, cells - first);
    for (std::int64_t i = 0; i < count; ++i) sums[i] += field[first + i];
  }
}

}  // namespace heat::host
