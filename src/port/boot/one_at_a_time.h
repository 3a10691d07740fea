#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "port/boot.h"

namespace brant::port {

/// Makes an adapter of which a process has one at a time: `open` says whether it has, and the adapter's destructor
/// clears it. Throws limit_reached, and what the constructor throws.
template <typename Adapter, typename... Args>
std::unique_ptr<Boot> open_alone(std::atomic<bool>& open, Args&&... args) {
  if (open.exchange(true, std::memory_order_acquire)) {
    throw Error(Status::limit_reached,
                "this process has a Runtime already: one at a time. Use that one, or destroy it before the "
                "next is made");
  }
  try {
    return std::make_unique<Adapter>(std::forward<Args>(args)...);
  } catch (...) {
    open.store(false, std::memory_order_release);
    throw;
  }
}

}  // namespace brant::port
