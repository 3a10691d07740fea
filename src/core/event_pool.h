#pragma once

#include "base/spares.h"
#include "port/memory.h"

namespace brant {

/// Lends events of a device and keeps them: making one costs a driver call. All must be back before it goes. The
/// worker's thread.
class EventPool {
 public:
  explicit EventPool(port::Device& device) noexcept : device_(device) {}
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  ~EventPool() {
    for (port::Event* event : spares_) device_.streams()->destroy_event(event);
  }

  /// The device must have streams.
  Result<port::Event*> take() noexcept {
    if (!spares_.empty()) return spares_.take();
    return spares_.make([this] { return device_.streams()->create_event(false); });
  }
  void give_back(port::Event* event) noexcept { spares_.give_back(event); }

 private:
  port::Device& device_;
  Spares<port::Event*> spares_;
};

}  // namespace brant
