// Waits of an engine: spinning, sleeping, and what they say when nothing comes.
#include <algorithm>
#include <thread>
#include <utility>

#include "core/engine.h"

namespace brant {
namespace {

constexpr auto kSleepLimit = std::chrono::milliseconds(100);
constexpr unsigned kStallCheckInterval = 1024;  // idle progress calls; progress looks at the clock as often

}  // namespace

bool Engine::must_poll() const noexcept {
  const Poller* poller = pollers_.front();
  while (poller != nullptr && poller->lets_sleep()) poller = PollerList::next(*poller);
  return poller != nullptr;
}

bool Engine::may_sleep() noexcept {
  if (!options_.sleep || must_poll() || !ready_.empty()) return false;
  // Looked at once more behind the alarm: who sets a word that is polled looks at the alarm afterwards.
  if (adapters_.links && (!adapters_.links->arm() || must_poll())) return false;
  if (!wire().capabilities().can_sleep || wire().arm()) return true;
  wire_turn_ = kWireTurn;  // it has something to do: the next progress looks at it
  return false;
}

bool Engine::wait_quietly(bool (*done)(void*) noexcept, void* context, std::chrono::nanoseconds timeout) noexcept {
  const TimePoint deadline = deadline_after(timeout);
  while (!done(context)) {
    wire_turn_ = kWireTurn;
    const bool moved = move() != 0;
    if (Clock::now() >= deadline) return done(context);
    if (moved) continue;
    check_peers();
    std::this_thread::yield();
  }
  return true;
}

Status Engine::wait(bool (*done)(void*) noexcept, void* context, std::chrono::nanoseconds timeout) noexcept {
  const TimePoint deadline = timeout == std::chrono::nanoseconds::max() ? kNever : deadline_after(timeout);
  waits_for_ever_ = deadline == kNever;
  const Status status = wait_until_done(done, context, deadline);
  waits_for_ever_ = false;
  if (trace_) note_idle(0);
  return status;
}

/// Traces the time since the first of a row of progress calls that saw nothing.
void Engine::note_idle(unsigned idle) noexcept {
  if (idle == 1) idle_since_ = Clock::now();
  if (idle != 0 || idle_since_ == TimePoint{}) return;
  Trace::Event event;
  event.kind = Trace::Kind::idle;
  event.name = "idle";
  event.begin = std::exchange(idle_since_, TimePoint{});
  event.end = Clock::now();
  if (event.end - event.begin > std::chrono::microseconds(1)) trace_->add(event);
}

/// Once in a row of silent calls, and only if that is twice as long as the last one reported: a server that mostly
/// waits says so a few times in its life.
void Engine::report_stall(TimePoint silent_since, bool for_ever) noexcept {
  const auto idle = recently_ - silent_since;
  if (stall_patience_ <= std::chrono::nanoseconds::zero() || idle < stall_patience_) return;
  if (std::exchange(stall_reported_, silent_since) == silent_since) return;
  stall_patience_ = 2 * idle;
  for (auto& [key, service] : services_) service->stalled(idle, for_ever);
}

Status Engine::wait_until_done(bool (*done)(void*) noexcept, void* context, TimePoint deadline) noexcept {
  unsigned idle = 0;
  TimePoint silent_since{};  // but for timers
  while (!done(context)) {
    const std::uint64_t timers_before = timers_.fired();
    const bool moved = progress() != 0;
    const bool timers_only = !moved && timers_.fired() != timers_before;
    idle = moved || timers_only ? 0 : idle + 1;
    if (trace_ && idle <= 1) note_idle(idle);
    if (moved) silent_since = TimePoint{};
    if (idle == 0) {  // progress looks at the clock often enough
      if (recently_ >= deadline && !done(context)) return Status::timed_out;
      if (timers_only && silent_since == TimePoint{}) silent_since = recently_;
      if (timers_only) report_stall(silent_since, deadline == kNever);
      continue;
    }
    if (idle < spin_limit_) {
      if (deadline != kNever && idle % 64 == 0 && Clock::now() >= deadline) return Status::timed_out;
      continue;
    }
    if (deadline != kNever && Clock::now() >= deadline) return Status::timed_out;
    if (silent_since == TimePoint{}) silent_since = Clock::now();
    if (may_sleep()) {
      // A wire that cannot wake us is looked at every millisecond.
      const auto limit = wire().capabilities().can_sleep ? kSleepLimit : std::chrono::milliseconds(1);
      counters_.sleeps.add();
      waiter_.sleep(std::min(deadline, timers_.next()), limit);
      wire_turn_ = kWireTurn;  // it may be what woke us
      recently_ = Clock::now();
      check_peers();
      report_stall(silent_since, deadline == kNever);
    } else {
      std::this_thread::yield();
      if (idle % kStallCheckInterval == 0) report_stall(silent_since, deadline == kNever);
    }
  }
  return Status::ok;
}

}  // namespace brant
