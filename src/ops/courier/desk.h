#pragma once

#include <cstdint>

#include "ops/courier/tagged_ring.h"

/// The memory that the CPU, the kernel's dispatcher and its worker groups meet in.
namespace brant::courier {

/// CPU to dispatcher: {to, from, flag | stop, value << 24 | bytes}, 32 bytes.
using OrderRing = TaggedRing<4, 256>;
/// Dispatcher to a worker group: a part of an order, its number, and which share of kGroupsMax that is of the order.
using PartRing = TaggedRing<6, 64>;

/// 10 parts of three 16-byte lanes each is what one load of a warp holds; 16 orders of two.
inline constexpr unsigned kOrdersPerLook = 16;
inline constexpr unsigned kPartsPerLook = 10;
inline constexpr unsigned kGroupsMax = 32;  ///< A lane each.
inline constexpr unsigned kDispatchersMax = 4;
/// Of a block. More would halve the registers that each may use, and the copying loop would spill its own.
inline constexpr unsigned kWarpsMax = 16;
inline constexpr unsigned kThreadsMax = 32 * (kWarpsMax + kDispatchersMax);

inline constexpr std::uint64_t kBytesMask = (std::uint64_t{1} << 24) - 1;
/// Flags are aligned to 8 bytes, which leaves their low bits for what kind of order it is.
inline constexpr std::uint64_t kStopBit = 1;
inline constexpr std::uint64_t kLoneBit = 2;  ///< Nothing else was under way when it was posted.
inline constexpr std::uint64_t kFlagMask = ~std::uint64_t{7};

struct OrderWords {
  enum : unsigned { to, from, flag, size, number, share };
};

template <typename Entry>
BRANT_DEVICE_CODE std::uint32_t bytes_of(const Entry& entry) {
  return static_cast<std::uint32_t>(entry.words[OrderWords::size] & kBytesMask);
}
template <typename Entry>
BRANT_DEVICE_CODE std::uint64_t value_of(const Entry& entry) {
  return entry.words[OrderWords::size] >> 24;
}
template <typename Entry>
BRANT_DEVICE_CODE bool is_stop(const Entry& entry) {
  return (entry.words[OrderWords::flag] & kStopBit) != 0;
}
template <typename Entry>
BRANT_DEVICE_CODE bool is_lone(const Entry& entry) {
  return (entry.words[OrderWords::flag] & kLoneBit) != 0;
}
/// Who left, and the number of the first order it did not take: one word, so that nobody sees half of it.
BRANT_DEVICE_CODE std::uint64_t leave_word(std::uint64_t launch, std::uint64_t next) {
  return (launch << 48) | (next & ((std::uint64_t{1} << 48) - 1));
}

/// In page-locked host memory, zeroed before the first launch.
struct HostDesk {
  /// Written by the CPU: the same orders for each dispatcher. Reads of one page by a GPU wait for one another on the
  /// bus, reads of several do not.
  alignas(4096) OrderRing orders[kDispatchersMax];
  alignas(128) std::uint64_t marks[OrderRing::kSlots];  ///< The number of the order last done in each slot.
  alignas(128) std::uint64_t started;                   ///< The launch whose dispatcher runs or ran.
  std::uint64_t left;                                   ///< leave_word.
  std::uint64_t fault;                                  ///< Emulation only: an order named memory out of reach.
};

/// In device memory, zeroed before the first launch.
struct DeviceDesk {
  PartRing parts[kGroupsMax];
  alignas(128) std::uint64_t finished[kGroupsMax][16];  ///< The part before which a group is done; a line each.
  alignas(128) std::uint64_t begin[2][kGroupsMax];      ///< Where launch n begins in each ring: begin[n % 2].
  alignas(128) std::uint64_t groups_started;            ///< Of all launches together; not the dispatcher's own group.
  /// Of split orders: each adds up to kGroupsMax, whatever its parts, so that nobody need ever reset it.
  alignas(128) std::uint64_t arrived[OrderRing::kSlots];
};

/// The kernel's argument, by value.
struct Launch {
  HostDesk* host;
  DeviceDesk* device;
  std::uint64_t number;         ///< From 1 on; 16 bits are kept.
  std::uint64_t first;          ///< The first order to take.
  std::uint64_t groups_before;  ///< groups_started when all earlier launches have ended.
  std::uint64_t idle_ns;        ///< Leaves so long after the last order,
  std::uint64_t lease_ns;       ///< and so long after its start in any case.
  std::uint32_t groups;         ///< Worker groups of this launch, the dispatcher's own included.
  std::uint32_t alone_bytes;    ///< The dispatcher copies a single order up to this size itself.
  std::uint32_t part_bytes;     ///< A single order is split into parts no smaller than this.
  std::uint32_t look_idle;      ///< Orders read by one look while there are none, and while there are.
  std::uint32_t look_busy;
  std::uint32_t dispatchers;  ///< Each looks at a ring of its own; together they look more often.
  std::uint32_t by_model;     ///< Not 0: with every fence that PTX's memory model asks for.
};

/// What the dispatchers and the group of their block share: shared memory on a GPU, zeroed at start.
struct BlockDesk {
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;

  PartRing parts;
  std::uint64_t finished;
  std::uint64_t lock;  ///< Of a dispatcher that hands out orders, or leaves; free: 0.
  std::uint64_t next;  ///< The first order that nobody has claimed; with kClosed, nobody will.
  /// Not 0: a lone order is being done, and nobody looks for others: a fence takes half as long again when it meets
  /// reads of host memory.
  std::uint64_t quiet;
  std::uint64_t busy_at;  ///< When orders came last, by the clock of the device.
  std::uint64_t found;    ///< Groups that run; the one of this block always does.
  OrderRing::Entry orders[kDispatchersMax][kOrdersPerLook];

  // Of whoever holds the lock. Per group: the next part, and `finished` as it was last asked.
  std::uint64_t posted[kGroupsMax];
  std::uint64_t known_finished[kGroupsMax];
  std::uint32_t groups_shift;  ///< Those used are 2^groups_shift.
  std::uint32_t turn;
  std::uint32_t deals;
};

/// What the warps of a group share: shared memory on a GPU.
struct GroupDesk {
  PartRing::Entry parts[kPartsPerLook];
  std::uint32_t count;
  std::uint32_t last;  ///< No batch follows.
};

}  // namespace brant::courier
