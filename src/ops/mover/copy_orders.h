#pragma once

#include <cstddef>
#include <cstdint>

namespace brant {

/// Copies that one kernel does together: its argument, by value.
struct CopyOrders {
  static constexpr unsigned kMax = 64;
  struct Order {
    std::byte* to;
    const std::byte* from;
    std::uint64_t bytes;
  };
  Order orders[kMax];
};
static_assert(sizeof(CopyOrders) <= 4096, "what a kernel's arguments may take");

}  // namespace brant
