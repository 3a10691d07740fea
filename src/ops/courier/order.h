#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/courier/desk.h"

namespace brant {

/// A copy the courier is asked for. The memory stays in place until the order is done.
struct CourierOrder {
  void* to = nullptr;          ///< Anything the device can write: its memory, a mapped peer's, registered host memory.
  const void* from = nullptr;  ///< Anything the device can read. Aligned like `to`, best by 16: else it is slow.
  std::uint32_t bytes = 0;     ///< 0: only the flag is written.
  std::uint32_t value = 1;     ///< What `flag` becomes.
  std::uint64_t* flag = nullptr;  ///< A word the device can write, also of memory another process polls; null for none.
};

namespace courier {

inline constexpr std::size_t kOrderBytesMax = kBytesMask;

/// An order can be written down: addresses are those of user space, and a flag is aligned.
inline bool writable(const CourierOrder& order) noexcept {
  const auto plain = [](const void* pointer) { return (reinterpret_cast<std::uint64_t>(pointer) >> kTagShift) == 0; };
  const bool flag_fits = plain(order.flag) && reinterpret_cast<std::uint64_t>(order.flag) % sizeof(std::uint64_t) == 0;
  const bool named = order.bytes == 0 || (order.to != nullptr && order.from != nullptr);
  return plain(order.to) && plain(order.from) && flag_fits && named && order.bytes <= kOrderBytesMax;
}

inline OrderRing::Entry entry_of(const CourierOrder& order) noexcept {
  OrderRing::Entry entry;
  entry.words[OrderWords::to] = reinterpret_cast<std::uint64_t>(order.to);
  entry.words[OrderWords::from] = reinterpret_cast<std::uint64_t>(order.from);
  entry.words[OrderWords::flag] = reinterpret_cast<std::uint64_t>(order.flag);
  entry.words[OrderWords::size] = std::uint64_t{order.value} << 24 | order.bytes;
  return entry;
}

/// `Entry` has its tags removed.
inline CourierOrder order_of(const OrderRing::Entry& entry) noexcept {
  CourierOrder order;
  order.to = reinterpret_cast<void*>(entry.words[OrderWords::to]);
  order.from = reinterpret_cast<const void*>(entry.words[OrderWords::from]);
  order.bytes = bytes_of(entry);
  order.value = static_cast<std::uint32_t>(value_of(entry));
  order.flag = reinterpret_cast<std::uint64_t*>(entry.words[OrderWords::flag] & kFlagMask);
  return order;
}

}  // namespace courier
}  // namespace brant
