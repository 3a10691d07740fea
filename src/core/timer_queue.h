#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "brant/core/timer.h"

namespace brant {

/// A binary heap of timers. Allocates only when more timers than ever before are set at once.
class TimerQueue {
 public:
  TimerQueue() = default;
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;
  /// Those that are still set are idle from then on: they may outlive the queue.
  ~TimerQueue();

  void set(Timer& timer, TimePoint when);
  void clear(Timer& timer) noexcept;
  [[nodiscard]] TimePoint next() const noexcept { return heap_.empty() ? kNever : heap_.front()->when; }
  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  /// Fires what is due, as much as fits a `BatchTime`; a fired timer is idle and may be set again. Returns how many.
  unsigned run(TimePoint now) noexcept;
  /// How many were fired so far.
  [[nodiscard]] std::uint64_t fired() const noexcept { return fired_; }

 private:
  void put(std::size_t place, Timer* timer) noexcept {
    heap_[place] = timer;
    timer->place = place;
  }
  void sift_up(std::size_t place) noexcept;
  void sift_down(std::size_t place) noexcept;

  std::vector<Timer*> heap_;
  std::uint64_t fired_ = 0;
};

}  // namespace brant
