#include "base/atomic_word.h"
#include "ops/rma/atomic_orders.h"

/// A thread for each order.
extern "C" __global__ void brant_atomics(const __grid_constant__ brant::AtomicOrders orders) {
  if (threadIdx.x >= orders.count) return;
  const brant::AtomicOrders::Order& order = orders.orders[threadIdx.x];
  *order.before = brant::perform_atomic(order.word, order.what);
}
