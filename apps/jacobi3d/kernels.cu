// The kernels of the device stencil. Each has a host version of the same arguments in device_stencil.cc.
#include "grid.h"

namespace {

using namespace jacobi;

constexpr int kWarp = 32;

__device__ inline double2 load_pair(const double* at) { return __ldg(reinterpret_cast<const double2*>(at)); }

// Two neighbouring cells of one row; either may lie outside the box. The new field is not read before it was written
// whole, so it is stored past the caches, which stay with the field that is read.
__device__ inline void store_pair(double* at, double2 value, bool first, bool second) {
  if (first && second) {
    __stcs(reinterpret_cast<double2*>(at), value);
  } else if (first) {
    __stcs(at, value.x);
  } else if (second) {
    __stcs(at + 1, value.y);
  }
}

// Where this thread's cells are, and which of them count.
struct Lane {
  std::int64_t x;            // of its first cell: even, so that a pair is one aligned 16-byte word
  bool loads;                // its pair holds a cell of the box or the one right of it
  bool first, second;        // which of its cells are in the box
  bool edge_low, edge_high;  // neighbours in x come from memory, not from a lane

  __device__ Lane(const Box& box, int lane) {
    const std::int64_t start = (box.low.x & ~std::int64_t{15}) + std::int64_t{blockIdx.x} * (2 * kWarp);
    x = start + 2 * lane;
    loads = x <= box.high.x;
    first = x >= box.low.x && x < box.high.x;
    second = x + 1 >= box.low.x && x + 1 < box.high.x;
    edge_low = lane == 0 && first;
    edge_high = lane == kWarp - 1 && second;
  }
};

__device__ inline double2 average_pair(const Lane& lane, const double* at, double2 centre, double2 y_low,
                                       double2 y_high, double2 z_low, double2 z_high) {
  constexpr unsigned kAllLanes = 0xffffffffu;
  double x_low = __shfl_up_sync(kAllLanes, centre.y, 1);
  double x_high = __shfl_down_sync(kAllLanes, centre.x, 1);
  if (lane.edge_low) x_low = __ldg(at - 1);
  if (lane.edge_high) x_high = __ldg(at + 2);
  return {average(centre.x, x_low, centre.y, y_low.x, y_high.x, z_low.x, z_high.x),
          average(centre.y, centre.x, x_high, y_low.y, y_high.y, z_low.y, z_high.y)};
}

}  // namespace

// The sweep. A warp owns a row of 64 cells, two cells a lane, and walks along z with the planes below, at and above it
// in registers; neighbours in x come from the next lane, neighbours in y from the caches. Memory is kept busy by many
// warps, not by many loads of one warp: more rows a warp, or loading planes ahead, costs registers, hence warps, and
// was slower on an H200 (figures in docs/tutorial/jacobi3d.md). For the same reason the register count is bounded: 6
// blocks of 256 threads an SM.
//
// Grid: x tiles of 64 cells, y tiles of blockDim.y rows, z pieces of kPlanesPerPiece planes. Block: 32 x 8.
extern "C" __global__ void __launch_bounds__(256, 6)
    jacobi_sweep(double* __restrict__ next, const double* __restrict__ current, Layout layout, Box box) {
  const Lane lane(box, static_cast<int>(threadIdx.x));
  const std::int64_t y = box.low.y + std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  const std::int64_t z = box.low.z + std::int64_t{blockIdx.z} * kPlanesPerPiece;
  const std::int64_t z_end = z + kPlanesPerPiece < box.high.z ? z + kPlanesPerPiece : box.high.z;
  if (y >= box.high.y) return;  // a whole warp
  const std::int64_t row = layout.row;
  const std::int64_t plane = layout.plane;
  const double* in = current + layout.at(lane.x, y, z);
  double* out = next + layout.at(lane.x, y, z);

  const double2 nothing = {0.0, 0.0};
  double2 below = lane.loads ? load_pair(in - plane) : nothing;
  double2 centre = lane.loads ? load_pair(in) : nothing;
  for (std::int64_t at = z; at < z_end; ++at, in += plane, out += plane) {
    const double2 above = lane.loads ? load_pair(in + plane) : nothing;
    const double2 y_low = lane.loads ? load_pair(in - row) : nothing;
    const double2 y_high = lane.loads ? load_pair(in + row) : nothing;
    store_pair(out, average_pair(lane, in, centre, y_low, y_high, below, above), lane.first, lane.second);
    below = centre;
    centre = above;
  }
}

// The cells next to neighbours. Grid: x over the cells of a box, y over the boxes.
extern "C" __global__ void jacobi_sweep_shell(double* __restrict__ next, const double* __restrict__ current,
                                              Layout layout, Shell shell) {
  const Box box = shell.box[blockIdx.y];
  const Extent extent = extent_of(box);
  const std::int64_t cells = extent.x * extent.y * extent.z;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < cells; i += step) {
    const std::int64_t line = i / extent.x;
    const std::int64_t at =
        layout.at(box.low.x + i - line * extent.x, box.low.y + line % extent.y, box.low.z + line / extent.y);
    const double* in = current + at;
    next[at] = average(in[0], in[-1], in[1], in[-layout.row], in[layout.row], in[-layout.plane], in[layout.plane]);
  }
}

// Visits all elements of all faces: where they lie in the buffer, and where in the field. Grid: x along the a of a
// face, y strides over its b, z over the faces.
template <typename Copy>
__device__ inline void for_each_packed(const PackedFaces& faces, Copy&& copy) {
  const PackedFace face = faces.face[blockIdx.z];
  const std::int64_t a = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (a >= face.count_a) return;
  for (std::int64_t b = blockIdx.y; b < face.count_b; b += gridDim.y) {
    copy(face.offset + b * face.count_a + a, face.first + b * face.step_b + a * face.step_a);
  }
}

extern "C" __global__ void jacobi_pack(double* __restrict__ buffer, const double* __restrict__ field,
                                       PackedFaces faces) {
  for_each_packed(faces, [&](std::int64_t packed, std::int64_t at) { buffer[packed] = field[at]; });
}

extern "C" __global__ void jacobi_unpack(double* __restrict__ field, const double* __restrict__ buffer,
                                         PackedFaces faces) {
  for_each_packed(faces, [&](std::int64_t packed, std::int64_t at) { field[at] = buffer[packed]; });
}

// Grid: x along rows of cells and ghost cells, y and z stride over rows and planes.
extern "C" __global__ void jacobi_fill(double* __restrict__ field, Layout layout, Place place) {
  const std::int64_t x = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x - 1;
  if (x > layout.cells.x) return;
  for (std::int64_t z = std::int64_t{blockIdx.z} - 1; z <= layout.cells.z; z += gridDim.z) {
    for (std::int64_t y = std::int64_t{blockIdx.y} - 1; y <= layout.cells.y; y += gridDim.y) {
      field[layout.at(x, y, z)] = start_value(place, layout, x, y, z);
    }
  }
}
