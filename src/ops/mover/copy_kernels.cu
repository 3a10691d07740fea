#include "ops/mover/copy_bytes.cuh"
#include "ops/mover/copy_orders.h"
#include "ops/mover/shaped_order.h"

namespace {

template <typename Unit, typename Index>
__device__ __forceinline__ void copy_units(const brant::ShapedOrder& order) {
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x; i < order.units;
       i += stride) {
    const std::int64_t from = brant::unit_offset<Index>(order.from, i, sizeof(Unit));
    const std::int64_t to = brant::unit_offset<Index>(order.to, i, sizeof(Unit));
    *reinterpret_cast<Unit*>(order.to.first + to) = *reinterpret_cast<const Unit*>(order.from.first + from);
  }
}

template <typename Index>
__device__ __forceinline__ void copy_shaped(const brant::ShapedOrder& order) {
  switch (order.unit) {
    case 16: return copy_units<int4, Index>(order);
    case 8: return copy_units<std::uint64_t, Index>(order);
    case 4: return copy_units<std::uint32_t, Index>(order);
    case 2: return copy_units<std::uint16_t, Index>(order);
    default: return copy_units<std::uint8_t, Index>(order);
  }
}

}  // namespace

/// One row of blocks per order (blockIdx.y); the blocks of a row share its bytes.
extern "C" __global__ void brant_copy_orders(const brant::CopyOrders orders) {
  const brant::CopyOrders::Order order = orders.orders[blockIdx.y];
  brant::copy_bytes(order.to, order.from, order.bytes);
}

extern "C" __global__ void brant_copy_shaped(const __grid_constant__ brant::ShapedOrder order) {
  order.narrow ? copy_shaped<std::uint32_t>(order) : copy_shaped<std::uint64_t>(order);
}
