#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "brant/base/result.h"
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
    for (port::Event* event : free_) device_.streams()->destroy_event(event);
  }

  /// The device must have streams.
  Result<port::Event*> take() noexcept {
    if (free_.empty()) return make();
    port::Event* event = free_.back();
    free_.pop_back();
    return event;
  }
  void give_back(port::Event* event) noexcept { free_.push_back(event); }  // there is room for all of them

 private:
  Result<port::Event*> make() noexcept {
    try {
      if (made_ == free_.capacity()) free_.reserve(2 * made_ + 1);
    } catch (const std::bad_alloc&) {
      return Status::no_memory;
    }
    const Result<port::Event*> event = device_.streams()->create_event(false);
    if (event) ++made_;
    return event;
  }

  port::Device& device_;
  std::size_t made_ = 0;
  std::vector<port::Event*> free_;
};

}  // namespace brant
