#pragma once

#include <chrono>
#include <cstddef>

#include "brant/base/clock.h"
#include "brant/base/status.h"
#include "core/deferrals.h"
#include "core/observe/counters.h"
#include "core/observe/trace.h"
#include "core/progress.h"
#include "core/progress_clock.h"
#include "core/silence.h"
#include "core/sleeping.h"
#include "core/timer_queue.h"
#include "core/turn_taking.h"

namespace brant {

/// How the program waits: it spins a little, then sleeps, and says what it waits for when nothing comes.
class Waiting {
 public:
  using Done = bool (*)(void* context) noexcept;
  using Yield = std::size_t (*)(void* scheduler) noexcept;

  /// `crowded`: this host has more processes than cores. `trace`: null without one.
  Waiting(bool crowded, ProgressClock& clock, TimerQueue& timers, Deferrals& deferrals, Silence& silence,
          Progress& progress, Sleeping& sleeping, Counters& counters, Trace* trace) noexcept;
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  /// See Worker::yield_to.
  void yield_to(Yield yield, void* scheduler) noexcept {
    yield_ = yield;
    scheduler_ = scheduler;
  }
  /// From now on each wait lets other threads in; null: none. Not to be changed within a wait.
  void take_turns(TurnTaking* turns) noexcept { turns_ = turns; }
  /// From any thread: a wait that sleeps looks again.
  void rouse() noexcept { sleeping_.rouse(); }
  /// See Worker::wait_until.
  Status wait(Done done, void* context, std::chrono::nanoseconds timeout) noexcept;
  /// Moves the links, the network and what is polled until `done` holds, and tells nobody: for a layer that has to wait
  /// inside a call, which a sink may have made. False: the time was over first.
  bool wait_quietly(Done done, void* context, std::chrono::nanoseconds timeout) noexcept;
  /// See Worker::arm.
  std::chrono::nanoseconds arm() noexcept;

  /// The program stands in a wait, and no wait that it stands in has a deadline.
  [[nodiscard]] bool for_ever() const noexcept { return standing_ != 0 && for_ever_ == standing_; }

 private:
  Status wait_until(TimePoint deadline, Done done, void* context) noexcept;
  void sleep(TimePoint deadline) noexcept;
  bool let_others_run() noexcept;
  bool stand_by(TimePoint deadline) noexcept;
  void note_idle(unsigned idle) noexcept;

  const unsigned spin_limit_;
  ProgressClock& clock_;
  TimerQueue& timers_;
  Deferrals& deferrals_;
  Silence& silence_;
  Progress& progress_;
  Sleeping& sleeping_;
  Counters& counters_;
  Trace* const trace_;
  TimePoint idle_since_{};  ///< Only with a trace.
  TimePoint gave_up_at_{};  ///< When the last wait ended, if its time was over.
  Yield yield_ = nullptr;
  void* scheduler_ = nullptr;
  TurnTaking* turns_ = nullptr;
  std::size_t standing_ = 0;  ///< Waits that have begun and not ended, of all user-level threads.
  std::size_t for_ever_ = 0;  ///< Those without a deadline.
};

}  // namespace brant
