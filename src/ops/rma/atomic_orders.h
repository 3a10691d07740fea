#pragma once

#include <cstdint>

#include "brant/base/atomic.h"

namespace brant {

/// Atomics that one kernel performs together, in no order: its argument, by value.
struct AtomicOrders {
  static constexpr unsigned kMax = 64;
  struct Order {
    void* word;
    std::uint64_t* before;  ///< In pinned memory: where the value goes that was there.
    Atomic what;
  };
  Order orders[kMax];
  unsigned count;
};
static_assert(sizeof(AtomicOrders) <= 4096, "what a kernel's arguments may take");

}  // namespace brant
