#pragma once

#include "ops/courier/desk.h"

namespace brant::courier {

/// Tells the receiver and the CPU that an order is done. What it wrote must have been fenced system-wide. One lane.
template <typename Machine, typename Entry>
BRANT_DEVICE_CODE void signal(Machine& machine, HostDesk& host, const Entry& order, std::uint64_t number) {
  const std::uint64_t place = order.words[OrderWords::flag] & kFlagMask;
  std::uint64_t* flag = place == 0 ? nullptr : machine.reach(reinterpret_cast<std::uint64_t*>(place));
  if (machine.faulted()) return;  // an order that could not be done is not reported as done
  if (flag != nullptr) machine.store_relaxed(flag, value_of(order));
  machine.store_relaxed(&host.marks[number % OrderRing::kSlots], number);
}

}  // namespace brant::courier
