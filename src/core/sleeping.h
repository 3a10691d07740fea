#pragma once

#include <chrono>

#include "brant/base/clock.h"
#include "core/commands.h"
#include "core/completions.h"
#include "core/host_links.h"
#include "core/pollers.h"
#include "core/progress.h"
#include "core/timer_queue.h"
#include "core/turn_taking.h"
#include "core/waiter.h"
#include "port/wire.h"

namespace brant {

/// When the worker may sleep, and for how long.
class Sleeping {
 public:
  /// `wanted`: false keeps the worker awake, whatever comes.
  Sleeping(bool wanted, port::Wire& wire, HostLinks& links, Pollers& pollers, Commands& commands, TimerQueue& timers,
           Completions& completions, Progress& progress, Waiter& waiter) noexcept;
  Sleeping(const Sleeping&) = delete;
  Sleeping& operator=(const Sleeping&) = delete;

  /// A timer or something polled is pending, or news that nobody was told yet: this process goes on by itself. Of
  /// operations that wait only the layers that work on them know what for.
  [[nodiscard]] bool process_goes_on() const noexcept {
    return !timers_.empty() || pollers_.busy() || completions_.due() || commands_.waiting();
  }

  /// Arms what wakes the worker. False: something is to be done at once, or cannot wake anybody.
  bool arm() noexcept;
  /// The same for a program that sleeps itself: how long it may, at most.
  std::chrono::nanoseconds time_left() noexcept;
  /// After `arm`: until something wakes the worker, the deadline, or the next timer. `turns`: threads that have turns
  /// meanwhile; null without.
  void sleep(TimePoint deadline, TurnTaking* turns) noexcept;
  /// From any thread: what sleeps does so no longer.
  void rouse() noexcept { waiter_.wake(); }

 private:
  [[nodiscard]] std::chrono::milliseconds longest() const noexcept;

  const bool wanted_;
  port::Wire& wire_;
  HostLinks& links_;
  Pollers& pollers_;
  Commands& commands_;
  TimerQueue& timers_;
  Completions& completions_;
  Progress& progress_;
  Waiter& waiter_;
};

}  // namespace brant
