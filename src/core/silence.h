#pragma once

#include <chrono>

#include "brant/base/clock.h"
#include "core/peers.h"
#include "core/progress_clock.h"
#include "core/services.h"

namespace brant {

/// How long nothing has happened for the program, and who says what it waits for once that is long. Timers do not end a
/// silence, nor does upkeep.
class Silence {
 public:
  /// `patience`: how long a wait is silent before it says what for; 0: for ever.
  Silence(std::chrono::nanoseconds patience, const ProgressClock& clock, Services& services,
          const Peers& peers) noexcept
      : clock_(clock), services_(services), peers_(peers), patience_(patience) {}
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

  [[nodiscard]] bool lasts() const noexcept { return since_ != TimePoint{}; }
  /// From the clock's last look on, unless it lasts already.
  void begin() noexcept {
    if (!lasts()) since_ = clock_.recently();
  }
  /// Something was done for the program.
  void end() noexcept { since_ = TimePoint{}; }

  /// A progress call begins.
  void begin_progress() noexcept { upkeep_ = false; }
  /// What just arrived, in progress, concerns nobody but brant itself: it ends no silence (see Service::stalled).
  void note_upkeep() noexcept { upkeep_ = true; }
  /// So many events and calls of user code came in this progress.
  void end_progress(unsigned events, unsigned user_calls) noexcept {
    if (user_calls != 0 || (events != 0 && !upkeep_)) end();
  }

  /// Once in a silence, and only if that is twice as long as the last one reported: a server that mostly waits says so
  /// a few times in its life. `for_ever`: the wait has no deadline.
  void report(bool for_ever) noexcept;

 private:
  void report_stopped() const noexcept;

  const ProgressClock& clock_;
  Services& services_;
  const Peers& peers_;
  std::chrono::nanoseconds patience_;
  TimePoint since_{};     ///< None: something has just happened.
  TimePoint reported_{};  ///< Since when the silence lasts that was reported last.
  bool upkeep_ = false;   ///< Something of that kind came in this progress.
};

}  // namespace brant
