#include "core/timer_queue.h"

#include "core/batch_time.h"

namespace brant {

TimerQueue::~TimerQueue() {
  for (Timer* timer : heap_) timer->place = Timer::kIdle;
}

void TimerQueue::set(Timer& timer, TimePoint when) {
  clear(timer);
  timer.when = when;
  heap_.push_back(&timer);
  put(heap_.size() - 1, &timer);
  sift_up(timer.place);
}

void TimerQueue::clear(Timer& timer) noexcept {
  const std::size_t place = timer.place;
  if (place == Timer::kIdle) return;
  Timer* last = heap_.back();
  heap_.pop_back();
  timer.place = Timer::kIdle;
  if (last == &timer) return;
  put(place, last);
  sift_up(place);
  sift_down(last->place);
}

unsigned TimerQueue::run(TimePoint now) noexcept {
  unsigned fired = 0;
  BatchTime time;
  while (!heap_.empty() && heap_.front()->when <= now && !time.over(fired)) {
    Timer& timer = *heap_.front();
    clear(timer);
    timer.fire(timer);
    ++fired;
  }
  fired_ += fired;
  return fired;
}

void TimerQueue::sift_up(std::size_t place) noexcept {
  Timer* timer = heap_[place];
  while (place > 0) {
    const std::size_t parent = (place - 1) / 2;
    if (heap_[parent]->when <= timer->when) break;
    put(place, heap_[parent]);
    place = parent;
  }
  put(place, timer);
}

void TimerQueue::sift_down(std::size_t place) noexcept {
  Timer* timer = heap_[place];
  for (;;) {
    std::size_t child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1]->when < heap_[child]->when) ++child;
    if (timer->when <= heap_[child]->when) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, timer);
}

}  // namespace brant
