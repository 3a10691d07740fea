#include "ops/channel/copy_orders.h"

/// One row of blocks per order (blockIdx.y); the blocks of a row share its bytes.
extern "C" __global__ void brant_copy_orders(const brant::CopyOrders orders) {
  const brant::CopyOrders::Order order = orders.orders[blockIdx.y];
  const std::uint64_t first = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x;
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  const std::uint64_t misaligned =
      (reinterpret_cast<std::uint64_t>(order.to) | reinterpret_cast<std::uint64_t>(order.from)) % sizeof(int4);
  const std::uint64_t wide = misaligned != 0 ? 0 : order.bytes / sizeof(int4);
  for (std::uint64_t i = first; i < wide; i += stride) {
    reinterpret_cast<int4*>(order.to)[i] = reinterpret_cast<const int4*>(order.from)[i];
  }
  for (std::uint64_t i = wide * sizeof(int4) + first; i < order.bytes; i += stride) order.to[i] = order.from[i];
}
