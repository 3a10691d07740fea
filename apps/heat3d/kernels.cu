// The kernels of the device. Each has a host version of the same arguments in host_kernels.cc.
#include "body.h"

namespace {

using namespace heat;

__device__ inline std::int64_t thread_of_x() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline std::int64_t threads_of_x() { return std::int64_t{gridDim.x} * blockDim.x; }

__device__ inline void conduct_cell(double* next, const double* field, const double* ghosts, const Body& body,
                                    const Cell& cell) {
  const Extent& n = body.cells;
  const std::int64_t at = cell.x + n.x * (cell.y + n.y * cell.z);
  const bool inside =
      cell.x > 0 && cell.x + 1 < n.x && cell.y > 0 && cell.y + 1 < n.y && cell.z > 0 && cell.z + 1 < n.z;
  next[at] = inside ? conducted(field + at, n.x, n.x * n.y, body) : conducted_at_edge(field, ghosts, body, cell);
}

}  // namespace

// Grid: x strides over the cells of a face, y over the faces.
extern "C" __global__ void heat_pack(double* __restrict__ faces, const double* __restrict__ field, Body body) {
  const int side = static_cast<int>(blockIdx.y);
  if (body.faces.open(side)) return;
  double* const face = faces + body.faces.offset[side];
  const std::int64_t cells = face_cells(body.cells, side);
  for (std::int64_t i = thread_of_x(); i < cells; i += threads_of_x()) {
    face[i] = field[face_cell(body.cells, side, i)];
  }
}

// A thread for each cell of x and y; z strides.
extern "C" __global__ void heat_conduct(double* __restrict__ next, const double* __restrict__ field,
                                        const double* __restrict__ ghosts, Body body, Box box) {
  const std::int64_t x = box.low.x + thread_of_x();
  const std::int64_t y = box.low.y + std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  if (x >= box.high.x || y >= box.high.y) return;
  for (std::int64_t z = box.low.z + blockIdx.z; z < box.high.z; z += gridDim.z) {
    conduct_cell(next, field, ghosts, body, {x, y, z});
  }
}

// Grid: x strides over the cells of a box, y over the boxes.
extern "C" __global__ void heat_conduct_shell(double* __restrict__ next, const double* __restrict__ field,
                                              const double* __restrict__ ghosts, Body body, Shell shell) {
  const Box box = shell.box[blockIdx.y];
  const Extent extent = extent_of(box);
  const std::int64_t cells = extent.x * extent.y * extent.z;
  for (std::int64_t i = thread_of_x(); i < cells; i += threads_of_x()) {
    const std::int64_t line = i / extent.x;
    conduct_cell(next, field, ghosts, body,
                 {box.low.x + i % extent.x, box.low.y + line % extent.y, box.low.z + line / extent.y});
  }
}

// kSums blocks of 256 threads: one part of the sum each.
extern "C" __global__ void heat_add(double* __restrict__ sums, const double* __restrict__ field, std::int64_t cells) {
  __shared__ double part[256];
  double mine = 0.0;
  for (std::int64_t i = thread_of_x(); i < cells; i += threads_of_x()) mine += field[i];
  part[threadIdx.x] = mine;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
