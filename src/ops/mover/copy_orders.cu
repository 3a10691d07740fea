#include "ops/mover/copy_bytes.cuh"
#include "ops/mover/copy_orders.h"

/// One row of blocks per order (blockIdx.y); the blocks of a row share its bytes.
extern "C" __global__ void brant_copy_orders(const brant::CopyOrders orders) {
  const brant::CopyOrders::Order order = orders.orders[blockIdx.y];
  brant::copy_bytes(order.to, order.from, order.bytes);
}
