#include "brant/core/worker.h"

#include "core/engine.h"

namespace brant {

unsigned Worker::progress() noexcept { return engine_.progress().step(); }

Status Worker::wait(bool (*done)(void*) noexcept, void* context, std::chrono::nanoseconds timeout) noexcept {
  return engine_.waiting().wait(done, context, timeout);
}

void Worker::yield_to(Yield yield, void* scheduler) noexcept { engine_.waiting().yield_to(yield, scheduler); }

int Worker::fd() const noexcept { return engine_.event_fd(); }

std::chrono::nanoseconds Worker::arm() noexcept { return engine_.waiting().arm(); }

Status Worker::post(void (*function)(void*) noexcept, void* context) noexcept {
  return engine_.commands().post(function, context);
}

void Worker::set_timer(Timer& timer, TimePoint when) { engine_.timers().set(timer, when); }

void Worker::clear_timer(Timer& timer) noexcept { engine_.timers().clear(timer); }

}  // namespace brant
