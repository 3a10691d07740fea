#pragma once

#include <cstdint>

namespace brant {

/// Copies that one kernel does together: its argument, by value.
struct CopyOrders {
  static constexpr unsigned kMax = 64;
  struct Order {
    char* to;
    const char* from;
    std::uint64_t bytes;
  };
  Order orders[kMax];
};
static_assert(sizeof(CopyOrders) <= 4096, "what a kernel's arguments may take");

}  // namespace brant
