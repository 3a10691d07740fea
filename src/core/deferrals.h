#pragma once

#include <chrono>

#include "brant/base/clock.h"
#include "brant/base/intrusive_list.h"
#include "core/deferred_work.h"
#include "core/progress_clock.h"
#include "core/stream_waits.h"

namespace brant {

/// What was deferred, and whether it can be done now.
class Deferrals {
 public:
  /// `streams`: whose waits count as kernels that wait; null where nobody has any.
  explicit Deferrals(const ProgressClock& clock, StreamWaits* streams = nullptr) noexcept
      : clock_(clock), streams_(streams) {}
  Deferrals(const Deferrals&) = delete;
  Deferrals& operator=(const Deferrals&) = delete;

  /// See DeferredWork. Both may be repeated.
  void defer(DeferredWork& work) noexcept {
    if (List::linked(work)) return;
    if (list_.empty()) since_ = clock_.recently();
    list_.push_back(work);
  }
  void take_back(DeferredWork& work) noexcept {
    if (List::linked(work)) list_.remove(work);
  }
  /// So many kernels more may run from now on, or fewer, that end only once the CPU of some process has done something:
  /// until they are gone, nobody waits for the device unasked.
  void note_waiting_kernels(int change) noexcept { waiting_kernels_ += change; }

  [[nodiscard]] bool kernels_wait() const noexcept { return waiting_kernels_ != 0 || streams_wait(); }
  /// Waits that are queued in streams have not passed.
  [[nodiscard]] bool streams_wait() const noexcept { return streams_ != nullptr && streams_->any(); }
  /// Does what was deferred. Not within progress; the caller knows that no kernel waits for this process.
  void run() noexcept {
    List due;  // what defers itself again stands in the next one
    while (DeferredWork* work = list_.pop_front()) due.push_back(*work);
    while (DeferredWork* work = due.pop_front()) work->run_deferred();
  }
  /// The same if no kernel is known that does.
  void run_if_safe() noexcept {
    if (!list_.empty() && !kernels_wait()) run();
  }
  /// The same if it was deferred so long ago that it is done although something may come soon.
  void run_if_old() noexcept {
    constexpr auto kOld = std::chrono::milliseconds(10);
    if (!list_.empty() && Clock::now() - since_ > kOld) run_if_safe();
  }

 private:
  using List = IntrusiveList<DeferredWork, &DeferredWork::deferred_hook>;

  const ProgressClock& clock_;
  StreamWaits* const streams_;
  List list_;
  TimePoint since_{};  ///< The first of them.
  int waiting_kernels_ = 0;
};

}  // namespace brant
