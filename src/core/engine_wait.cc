// Waits of an engine: spinning, sleeping, and what they say when nothing comes.
#include <algorithm>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/process_stat.h"
#include "core/engine.h"

namespace brant {
namespace {

constexpr auto kSleepLimit = std::chrono::milliseconds(100);
/// A wait that begins so soon after one whose time was over goes on with its silence: programs wait in pieces.
constexpr auto kBetweenPieces = std::chrono::milliseconds(10);
/// What was deferred for so long is done when the program waits next, although something may come soon.
constexpr auto kDeferredLong = std::chrono::milliseconds(10);
constexpr std::size_t kStoppedNamedMax = 8;
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
  wire_turn_ = kWireTurnMoving;  // it has something to do: the next progress looks at it
  return false;
}

std::chrono::nanoseconds Engine::arm() noexcept {
  constexpr std::chrono::nanoseconds kAtOnce{0};
  look_around();
  run_deferred_if_safe();
  waiter_.quieten();
  if (commands_waiting_.load(std::memory_order_acquire) != 0 || !may_sleep()) return kAtOnce;
  wire_turn_ = kWireTurnMoving;  // it may be what wakes us
  return std::clamp<std::chrono::nanoseconds>(timers_.next() - Clock::now(), kAtOnce, longest_sleep());
}

/// A wire that cannot wake us is looked at every millisecond.
std::chrono::milliseconds Engine::longest_sleep() noexcept {
  return wire().capabilities().can_sleep ? kSleepLimit : std::chrono::milliseconds(1);
}

bool Engine::wait_quietly(bool (*done)(void*) noexcept, void* context, std::chrono::nanoseconds timeout) noexcept {
  const TimePoint deadline = deadline_after(timeout);
  while (!done(context)) {
    wire_turn_ = kWireTurnMoving;
    const bool moved = move() != 0;
    if (Clock::now() >= deadline) return done(context);
    if (moved) continue;
    look_around();
    std::this_thread::yield();
  }
  return true;
}

Status Engine::wait(bool (*done)(void*) noexcept, void* context, std::chrono::nanoseconds timeout) noexcept {
  const TimePoint deadline = timeout == std::chrono::nanoseconds::max() ? kNever : deadline_after(timeout);
  waits_for_ever_ = deadline == kNever;
  const bool goes_on = gave_up_at_ != TimePoint{} && Clock::now() - gave_up_at_ < kBetweenPieces;
  if (!goes_on) break_silence();
  gave_up_at_ = TimePoint{};
  if (!deferred_.empty() && Clock::now() - deferred_since_ > kDeferredLong) run_deferred_if_safe();
  const Status status = wait_until_done(done, context, deadline);
  waits_for_ever_ = false;
  if (status == Status::timed_out) {
    gave_up_at_ = recently_ = Clock::now();
    begin_silence();
    report_stall(false);
  }
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

void Engine::begin_silence() noexcept {
  if (silent_since_ == TimePoint{}) silent_since_ = recently_;
}

/// Once in a silence, and only if that is twice as long as the last one reported: a server that mostly waits says so a
/// few times in its life.
void Engine::report_stall(bool for_ever) noexcept {
  const auto idle = recently_ - silent_since_;
  if (stall_patience_ <= std::chrono::nanoseconds::zero() || idle < stall_patience_) return;
  if (std::exchange(stall_reported_, silent_since_) == silent_since_) return;
  bool told = false;
  for (auto& [key, service] : services_) told = service->stalled(idle, for_ever) || told;
  if (!told) return;
  stall_patience_ = 2 * idle;
  report_stopped();
}

/// Processes of this host that can do nothing: a signal or a debugger holds them.
void Engine::report_stopped() const noexcept {
  std::size_t stopped = 0;
  for (const Peer& peer : peers_) {
    if (peer.lost || !runs_elsewhere(peer) || !watched_by_kernel(peer)) continue;
    const Result<ProcessStat> stat = read_process_stat(peer.record.pid);
    if (!stat || !stat->stopped() || ++stopped > kStoppedNamedMax) continue;
    log::warn("rank {} (pid {}) is stopped, by a signal or a debugger: `kill -CONT {}` lets it go on", peer.rank.value,
              peer.record.pid, peer.record.pid);
  }
  if (stopped > kStoppedNamedMax) log::warn("{} more ranks of this host are stopped", stopped - kStoppedNamedMax);
}

Status Engine::wait_until_done(bool (*done)(void*) noexcept, void* context, TimePoint deadline) noexcept {
  unsigned idle = 0;
  while (!done(context)) {
    const std::uint64_t timers_before = timers_.fired();
    const bool moved = progress() != 0;
    const bool timers_only = !moved && timers_.fired() != timers_before;
    idle = moved || timers_only ? 0 : idle + 1;
    if (trace_ && idle <= 1) note_idle(idle);
    if (idle == 0) {  // progress looks at the clock often enough
      if (recently_ >= deadline && !done(context)) return Status::timed_out;
      if (timers_only) begin_silence();
      if (timers_only) report_stall(deadline == kNever);
      continue;
    }
    if (idle < spin_limit_) {
      if (deadline != kNever && idle % 64 == 0 && Clock::now() >= deadline) return Status::timed_out;
      continue;
    }
    if (deadline != kNever && Clock::now() >= deadline) return Status::timed_out;
    if (silent_since_ == TimePoint{}) silent_since_ = recently_ = Clock::now();
    run_deferred_if_safe();
    if (may_sleep()) {
      counters_.sleeps.add();
      waiter_.sleep(std::min(deadline, timers_.next()), longest_sleep());
      wire_turn_ = kWireTurnMoving;  // it may be what woke us
      recently_ = Clock::now();
      look_around();
      report_stall(deadline == kNever);
    } else {
      std::this_thread::yield();
      if (idle % kStallCheckInterval == 0) report_stall(deadline == kNever);
    }
  }
  return Status::ok;
}

}  // namespace brant
