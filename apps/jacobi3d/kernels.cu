// The kernels of the device stencil. Each has a host version of the same arguments in device_stencil.cc.
#include "grid.h"
#include "resident_steps.h"

namespace {

using namespace jacobi;

constexpr int kWarp = 32;

// How the field that is read is loaded. One that others write while the kernel runs must not be in the read-only cache.
struct Unchanged {
  __device__ static double2 pair(const double* at) { return __ldg(reinterpret_cast<const double2*>(at)); }
  __device__ static double one(const double* at) { return __ldg(at); }
};
struct Changing {
  __device__ static double2 pair(const double* at) { return *reinterpret_cast<const double2*>(at); }
  __device__ static double one(const double* at) { return *at; }
};

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

  __device__ Lane(const Box& box, std::int64_t tile, int lane) {
    const std::int64_t start = (box.low.x & ~std::int64_t{15}) + tile * (2 * kWarp);
    x = start + 2 * lane;
    loads = x <= box.high.x;
    first = x >= box.low.x && x < box.high.x;
    second = x + 1 >= box.low.x && x + 1 < box.high.x;
    edge_low = lane == 0 && first;
    edge_high = lane == kWarp - 1 && second;
  }
};

template <typename Load>
__device__ inline double2 average_pair(const Lane& lane, const double* at, double2 centre, double2 y_low,
                                       double2 y_high, double2 z_low, double2 z_high) {
  constexpr unsigned kAllLanes = 0xffffffffu;
  double x_low = __shfl_up_sync(kAllLanes, centre.y, 1);
  double x_high = __shfl_down_sync(kAllLanes, centre.x, 1);
  if (lane.edge_low) x_low = Load::one(at - 1);
  if (lane.edge_high) x_high = Load::one(at + 2);
  return {average(centre.x, x_low, centre.y, y_low.x, y_high.x, z_low.x, z_high.x),
          average(centre.y, centre.x, x_high, y_low.y, y_high.y, z_low.y, z_high.y)};
}

// A warp's part of a sweep: 64 cells of a row at most, in the planes from `z` to before `z_end`.
template <typename Load>
__device__ __forceinline__ void sweep_rows(double* next, const double* current, const Layout& layout, const Lane& lane,
                                           std::int64_t y, std::int64_t z, std::int64_t z_end) {
  const std::int64_t row = layout.row;
  const std::int64_t plane = layout.plane;
  const double* in = current + layout.at(lane.x, y, z);
  double* out = next + layout.at(lane.x, y, z);

  const double2 nothing = {0.0, 0.0};
  double2 below = lane.loads ? Load::pair(in - plane) : nothing;
  double2 centre = lane.loads ? Load::pair(in) : nothing;
  for (std::int64_t at = z; at < z_end; ++at, in += plane, out += plane) {
    const double2 above = lane.loads ? Load::pair(in + plane) : nothing;
    const double2 y_low = lane.loads ? Load::pair(in - row) : nothing;
    const double2 y_high = lane.loads ? Load::pair(in + row) : nothing;
    store_pair(out, average_pair<Load>(lane, in, centre, y_low, y_high, below, above), lane.first, lane.second);
    below = centre;
    centre = above;
  }
}

// The cells of a box, one for each thread of so many and on.
__device__ __forceinline__ void sweep_cells(double* next, const double* current, const Layout& layout, const Box& box,
                                            std::int64_t first, std::int64_t step) {
  const Extent extent = extent_of(box);
  const std::int64_t cells = extent.x * extent.y * extent.z;
  for (std::int64_t i = first; i < cells; i += step) {
    const std::int64_t line = i / extent.x;
    const std::int64_t at =
        layout.at(box.low.x + i - line * extent.x, box.low.y + line % extent.y, box.low.z + line / extent.y);
    const double* in = current + at;
    next[at] = average(in[0], in[-1], in[1], in[-layout.row], in[layout.row], in[-layout.plane], in[layout.plane]);
  }
}

// A thread of a kernel that stays: its block takes one tile after another, of those that the blocks of `jacobi_sweep`
// have, with rows for its warps.
class Sweeper : public brant::simt::GpuThread {
 public:
  __device__ __noinline__ void sweep(double* next, const double* current, const Layout& layout, const Box& box,
                                     std::int64_t planes) {
    if (is_empty(box)) return;
    const std::int64_t warps = blockDim.x / kWarp;
    const std::int64_t tiles_x = (box.high.x - (box.low.x & ~std::int64_t{15}) + 2 * kWarp - 1) / (2 * kWarp);
    const std::int64_t tiles_y = (box.high.y - box.low.y + warps - 1) / warps;
    const std::int64_t tiles = tiles_x * tiles_y * ((box.high.z - box.low.z + planes - 1) / planes);
    for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      const Lane lane(box, tile % tiles_x, static_cast<int>(threadIdx.x % kWarp));
      const std::int64_t y = box.low.y + tile / tiles_x % tiles_y * warps + threadIdx.x / kWarp;
      const std::int64_t z = box.low.z + tile / (tiles_x * tiles_y) * planes;
      const std::int64_t z_end = z + planes < box.high.z ? z + planes : box.high.z;
      if (y < box.high.y) sweep_rows<Changing>(next, current, layout, lane, y, z, z_end);  // a whole warp
    }
  }
  __device__ __noinline__ void sweep_shell(double* next, const double* current, const Layout& layout,
                                           const Shell& shell) {
    for (int box = 0; box < shell.count; ++box) {
      sweep_cells(next, current, layout, shell.box[box], std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x,
                  std::int64_t{gridDim.x} * blockDim.x);
    }
  }
};

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
  const Lane lane(box, std::int64_t{blockIdx.x}, static_cast<int>(threadIdx.x));
  const std::int64_t y = box.low.y + std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  const std::int64_t z = box.low.z + std::int64_t{blockIdx.z} * kPlanesPerPiece;
  const std::int64_t z_end = z + kPlanesPerPiece < box.high.z ? z + kPlanesPerPiece : box.high.z;
  if (y >= box.high.y) return;  // a whole warp
  sweep_rows<Unchanged>(next, current, layout, lane, y, z, z_end);
}

// Iterations with the exchange of ghosts, and no CPU in between: see resident_steps.h. Block: 256, the grid one for
// each SM at most.
extern "C" __global__ void __launch_bounds__(256, 2)
    jacobi_resident(const __grid_constant__ brant::notify::KernelControl control,
                    const __grid_constant__ Resident<brant::halo::DirectPlan> work) {
  Sweeper machine;
  iterate_as_told(machine, control, work);
}

// The same, with a CPU that sends what is packed.
extern "C" __global__ void __launch_bounds__(256, 2)
    jacobi_resident_messages(const __grid_constant__ brant::notify::KernelControl control,
                             const __grid_constant__ Resident<brant::halo::MessagePlan> work) {
  Sweeper machine;
  iterate_as_told(machine, control, work);
}

// The cells next to neighbours. Grid: x over the cells of a box, y over the boxes.
extern "C" __global__ void jacobi_sweep_shell(double* __restrict__ next, const double* __restrict__ current,
                                              Layout layout, Shell shell) {
  sweep_cells(next, current, layout, shell.box[blockIdx.y], std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x,
              std::int64_t{gridDim.x} * blockDim.x);
}

// Grid: x strides over the cells. Differences are not negative, so their bits are ordered as they are.
extern "C" __global__ void jacobi_largest_change(double* __restrict__ largest, const double* __restrict__ next,
                                                 const double* __restrict__ current, Layout layout, Box box) {
  const Extent extent = extent_of(box);
  const std::int64_t cells = extent.x * extent.y * extent.z;
  double mine = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < cells;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t line = i / extent.x;
    const std::int64_t at =
        layout.at(box.low.x + i - line * extent.x, box.low.y + line % extent.y, box.low.z + line / extent.y);
    mine = fmax(mine, fabs(next[at] - current[at]));
  }
  for (int step = kWarp / 2; step > 0; step /= 2) mine = fmax(mine, __shfl_xor_sync(0xffffffffu, mine, step));
  if (threadIdx.x % kWarp == 0) atomicMax(reinterpret_cast<unsigned long long*>(largest), __double_as_longlong(mine));
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
