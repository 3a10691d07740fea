#pragma once

#include <cstdint>

#include "../common/cells.h"

/// The physics, and how a block lies in memory: compiled by g++ and by nvcc. Cells are in x first, then y, then z, with
/// no ghost cells between them: what neighbours send stays in buffers of its own, a face each.
namespace heat {

using namespace apps;

inline constexpr int kFaces = 6;  // numbered as `apps::Side`

/// Where the faces of a block lie in a buffer of faces, in doubles. Negative: the body ends there.
struct Faces {
  std::int64_t offset[kFaces] = {-1, -1, -1, -1, -1, -1};

  APPS_SHARED bool open(int side) const noexcept { return offset[side] < 0; }
};

/// All that a step needs to know of a block but its memory.
struct Body {
  Extent cells;
  Faces faces;
  double dt = 0.1;     ///< Time of a step.
  double q = 1.0;      ///< Heat that flows between two neighbouring cells, for a degree of difference.
  double sigma = 1.0;  ///< What an open side of a cell radiates, at temperature 1.
  double power = 1.0;  ///< What comes in at the lower end of z.
};

// The compiler of the GPU makes one rounding of a product and a sum; that of the host does not. These agree.
#if defined(__CUDA_ARCH__)
APPS_SHARED double product(double a, double b) noexcept { return __dmul_rn(a, b); }
APPS_SHARED double sum(double a, double b) noexcept { return __dadd_rn(a, b); }
#else
APPS_SHARED double product(double a, double b) noexcept { return a * b; }
APPS_SHARED double sum(double a, double b) noexcept { return a + b; }
#endif

/// A cell that has all its neighbours in the field, `row` and `plane` doubles away along y and z.
APPS_SHARED double conducted(const double* at, std::int64_t row, std::int64_t plane, const Body& body) noexcept {
  const double here = *at;
  double flow = product(body.q, at[-1] - here);
  flow = sum(flow, product(body.q, at[1] - here));
  flow = sum(flow, product(body.q, at[-row] - here));
  flow = sum(flow, product(body.q, at[row] - here));
  flow = sum(flow, product(body.q, at[-plane] - here));
  flow = sum(flow, product(body.q, at[plane] - here));
  return sum(here, product(body.dt, flow));
}

/// Any cell: neighbours that the block has not got are in `ghosts`, or there is none, and the side radiates. Sums in
/// the same order as above, so that a cell has the same bits wherever the body is cut.
APPS_SHARED double conducted_at_edge(const double* field, const double* ghosts, const Body& body, const Cell& cell) {
  const Extent& n = body.cells;
  const std::int64_t row = n.x;
  const std::int64_t plane = n.x * n.y;
  const double* const at = field + cell.x + cell.y * row + cell.z * plane;
  const double here = *at;
  const std::int64_t to_end[kFaces] = {cell.x, n.x - 1 - cell.x, cell.y, n.y - 1 - cell.y, cell.z, n.z - 1 - cell.z};
  const std::int64_t step[kFaces] = {-1, 1, -row, row, -plane, plane};
  const std::int64_t in_face[kFaces / 2] = {cell.y + n.y * cell.z, cell.x + n.x * cell.z, cell.x + n.x * cell.y};
  double flow = -0.0;  // which changes no bit of what is added
  int open = 0;
  for (int side = 0; side < kFaces; ++side) {
    if (to_end[side] > 0) {
      flow = sum(flow, product(body.q, at[step[side]] - here));
    } else if (!body.faces.open(side)) {
      flow = sum(flow, product(body.q, ghosts[body.faces.offset[side] + in_face[side / 2]] - here));
    } else {
      ++open;
    }
  }
  const double square = product(here, here);
  const double radiated = product(body.sigma, product(square, square));
  for (int side = 0; side < open; ++side) flow = sum(flow, -radiated);
  if (cell.z == 0 && body.faces.open(4)) flow = sum(flow, body.power);
  return sum(here, product(body.dt, flow));
}

/// Of the cells of a face: how many there are, and which cell of the block the i-th is.
APPS_SHARED std::int64_t face_cells(const Extent& n, int side) noexcept {
  return side < 2 ? n.y * n.z : side < 4 ? n.x * n.z : n.x * n.y;
}
APPS_SHARED std::int64_t face_cell(const Extent& n, int side, std::int64_t i) noexcept {
  const bool high = side % 2 == 1;
  if (side < 2) return i * n.x + (high ? n.x - 1 : 0);
  if (side < 4) return i / n.x * n.x * n.y + (high ? n.y - 1 : 0) * n.x + i % n.x;
  return (high ? n.z - 1 : 0) * n.x * n.y + i;
}

/// Into so many sums the cells are added, which are added up by the host.
inline constexpr std::int64_t kSums = 256;

}  // namespace heat
