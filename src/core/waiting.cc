#include "core/waiting.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace brant {
namespace {

/// A wait that begins so soon after one whose time was over goes on with its silence: programs wait in pieces.
constexpr auto kBetweenPieces = std::chrono::milliseconds(10);
constexpr unsigned kStallCheckInterval = 1024;  // idle progress calls; progress looks at the clock as often
constexpr unsigned kLooks = 64;                 // idle progress calls between looks for the deadline
constexpr unsigned kSpinWithRoom = 20'000;      // idle progress calls before sleeping when every process has a core
// Others may have to run on this very core before what is awaited can happen, whoever counted the cores. To ask takes
// 0.1 us where nobody does.
constexpr unsigned kLettings = 256;     // idle progress calls between them
constexpr unsigned kSpinCrowded = 200;  // more processes than cores: a spinning loser keeps the winner off

}  // namespace

Waiting::Waiting(bool crowded, ProgressClock& clock, TimerQueue& timers, Deferrals& deferrals, Silence& silence,
                 Progress& progress, Sleeping& sleeping, Counters& counters, Trace* trace) noexcept
    : spin_limit_(crowded ? kSpinCrowded : kSpinWithRoom),
      clock_(clock),
      timers_(timers),
      deferrals_(deferrals),
      silence_(silence),
      progress_(progress),
      sleeping_(sleeping),
      counters_(counters),
      trace_(trace) {}

std::chrono::nanoseconds Waiting::arm() noexcept {
  progress_.look_around();
  deferrals_.run_if_safe();
  return sleeping_.time_left();
}

bool Waiting::wait_quietly(Done done, void* context, std::chrono::nanoseconds timeout) noexcept {
  const TimePoint deadline = deadline_after(timeout);
  while (!done(context)) {
    progress_.look_at_wire();
    const bool moved = progress_.move() != 0;
    if (Clock::now() >= deadline) return done(context);
    if (moved) continue;
    progress_.look_around();
    std::this_thread::yield();
  }
  return true;
}

Status Waiting::wait(Done done, void* context, std::chrono::nanoseconds timeout) noexcept {
  const TimePoint deadline = timeout == std::chrono::nanoseconds::max() ? kNever : deadline_after(timeout);
  const std::size_t for_ever = deadline == kNever ? 1 : 0;
  ++standing_;
  for_ever_ += for_ever;
  const bool next_piece = gave_up_at_ != TimePoint{} && Clock::now() - gave_up_at_ < kBetweenPieces;
  if (!next_piece) silence_.end();
  gave_up_at_ = TimePoint{};
  deferrals_.run_if_old();
  const Status status = wait_until(deadline, done, context);
  for_ever_ -= for_ever;
  --standing_;
  if (status == Status::timed_out) {
    gave_up_at_ = clock_.look();
    silence_.begin();
    silence_.report(false);
  }
  if (trace_ != nullptr) note_idle(0);
  return status;
}

/// False: all user-level threads stand in waits.
bool Waiting::let_others_run() noexcept {
  if (yield_(scheduler_) <= standing_) return false;
  silence_.end();
  return true;
}

/// True: another thread sleeps on the descriptors, and this one has waited beside it.
bool Waiting::stand_by(TimePoint deadline) noexcept {
  constexpr auto kAtMost = std::chrono::milliseconds(100);
  if (turns_ == nullptr || !turns_->another_sleeps()) return false;
  turns_->stand_by(std::min(deadline, Clock::now() + kAtMost));
  clock_.look();
  return true;
}

/// Another wait may end before this one.
void Waiting::sleep(TimePoint deadline) noexcept {
  constexpr auto kAmongOthers = std::chrono::milliseconds(1);
  if (standing_ > for_ever_ && standing_ > 1) deadline = std::min(deadline, Clock::now() + kAmongOthers);
  counters_.sleeps.add();
  sleeping_.sleep(deadline, turns_);
  clock_.look();
}

/// Traces the time since the first of a row of progress calls that saw nothing.
void Waiting::note_idle(unsigned idle) noexcept {
  if (idle == 1) idle_since_ = Clock::now();
  if (idle != 0 || idle_since_ == TimePoint{}) return;
  Trace::Event event;
  event.kind = Trace::Kind::idle;
  event.name = "idle";
  event.begin = std::exchange(idle_since_, TimePoint{});
  event.end = Clock::now();
  if (event.end - event.begin > std::chrono::microseconds(1)) trace_->add(event);
}

Status Waiting::wait_until(TimePoint deadline, Done done, void* context) noexcept {
  const bool for_ever = deadline == kNever;
  unsigned idle = 0;
  while (!done(context)) {
    const std::uint64_t timers_before = timers_.fired();
    const bool moved = progress_.step() != 0;
    const bool timers_only = !moved && timers_.fired() != timers_before;
    // Timers are no reason to spin: one that fires again and again would keep a slow process awake for good.
    idle = moved ? 0 : idle + 1;
    if (trace_ != nullptr && idle <= 1) note_idle(idle);
    if (turns_ != nullptr) {
      turns_->offer(moved || timers_only);
      if (done(context)) break;  // whoever had a turn did not know that this thread would wait for the news of it
    }
    if (timers_only) {
      silence_.begin();
      silence_.report(for_ever);
    }
    if (idle == 0) {  // progress looks at the clock often enough
      if (clock_.recently() >= deadline && !done(context)) return Status::timed_out;
      continue;
    }
    if (timers_only && done(context)) break;
    if (yield_ != nullptr) {
      if (let_others_run()) idle = 0;
      if (done(context)) break;  // they made progress too
    }
    if (idle < spin_limit_) {
      if (!for_ever && idle % kLooks == 0 && Clock::now() >= deadline) return Status::timed_out;
      if (idle != 0 && idle % kLettings == 0) std::this_thread::yield();  // 0: others have work here
      continue;
    }
    if (!for_ever && Clock::now() >= deadline) return Status::timed_out;
    if (!silence_.lasts()) {
      clock_.look();
      silence_.begin();
    }
    deferrals_.run_if_safe();
    if (stand_by(deadline)) {
      silence_.report(for_ever);
    } else if (sleeping_.arm()) {
      if (done(context)) break;  // whoever sets a word looks at the alarm afterwards, so this looks behind the alarm
      sleep(deadline);
      progress_.look_around();
      silence_.report(for_ever);
    } else {
      std::this_thread::yield();
      if (idle % kStallCheckInterval == 0) silence_.report(for_ever);
    }
  }
  return Status::ok;
}

}  // namespace brant
