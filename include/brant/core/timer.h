#pragma once

#include <chrono>
#include <coroutine>
#include <cstddef>

#include "brant/base/clock.h"
#include "brant/core/operation.h"
#include "brant/core/worker.h"

namespace brant {

/// Runs `fire` from `Worker::progress` at or after `when`. Lies in the record it serves and must be idle or cleared
/// before that goes. Idle, and never fired, once the runtime has gone.
struct Timer {
  TimePoint when = kNever;
  void (*fire)(Timer& self) noexcept = nullptr;
  std::size_t place = kIdle;  ///< In the queue's heap.

  static constexpr std::size_t kIdle = ~std::size_t{0};
};

namespace detail {

/// The timer of an awaitable: idle again when that goes, however the task ends.
class AwaitableTimer : protected Timer {
 public:
  AwaitableTimer(const AwaitableTimer&) = delete;
  AwaitableTimer& operator=(const AwaitableTimer&) = delete;

 protected:
  explicit AwaitableTimer(Worker& worker) noexcept : worker_(worker) {}
  ~AwaitableTimer() { stop(); }

  void start(TimePoint at, void (*then)(Timer& self) noexcept) {
    fire = then;
    worker_.set_timer(*this, at);
  }
  /// Asks the worker only if there is something to stop: an idle timer may outlive it.
  void stop() noexcept {
    if (place != kIdle) worker_.clear_timer(*this);
  }

 private:
  Worker& worker_;
};

/// Goes on with its waiter at a time.
class ResumingTimer : public AwaitableTimer {
 protected:
  using AwaitableTimer::AwaitableTimer;

  void resume_at(TimePoint at, std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    start(at, [](Timer& self) noexcept { static_cast<ResumingTimer&>(self).waiter_.resume(); });
  }

 private:
  std::coroutine_handle<> waiter_;
};

}  // namespace detail

/// `co_await sleep_for(worker, 5ms)`: others run meanwhile.
class [[nodiscard]] sleep_for final : private detail::ResumingTimer {
 public:
  sleep_for(Worker& worker, std::chrono::nanoseconds duration) noexcept : ResumingTimer(worker), duration_(duration) {}

  bool await_ready() const noexcept { return duration_ <= std::chrono::nanoseconds::zero(); }
  void await_suspend(std::coroutine_handle<> waiter) { resume_at(deadline_after(duration_), waiter); }
  void await_resume() const noexcept {}

 private:
  std::chrono::nanoseconds duration_;
};

/// `co_await yield(worker)`, in a task that computes for long: the network moves, and whatever else is due here runs,
/// completions, messages of chares and other tasks that yield; then the task goes on, in a later progress. Nobody ends
/// it if nothing else is due: a task that yields until something happens keeps its core busy. Costs some hundred
/// nanoseconds when there is nothing else; allocates as `Worker::set_timer` does.
class [[nodiscard]] yield final : private detail::ResumingTimer {
 public:
  explicit yield(Worker& worker) noexcept : ResumingTimer(worker) {}

  bool await_ready() const noexcept { return false; }
  /// Now is later than what the present round of timers calls now.
  void await_suspend(std::coroutine_handle<> waiter) { resume_at(Clock::now(), waiter); }
  void await_resume() const noexcept {}
};

/// `co_await within(worker, operation, 5ms)`: the operation's outcome, or `timed_out`. A receive that timed out is
/// withdrawn and gives its turn to the next; one whose message is in the buffer by then has not timed out. A send that
/// the network already works on goes on unobserved, so its source must stay valid until the channel closes. If the
/// operation itself is destroyed meanwhile, the outcome at the end of the time is `canceled`.
class [[nodiscard]] within final : private detail::AwaitableTimer {
 public:
  within(Worker& worker, Operation& operation, std::chrono::nanoseconds duration) noexcept
      : AwaitableTimer(worker), operation_(operation), duration_(duration) {}

  bool await_ready() const noexcept { return operation_.done(); }
  void await_suspend(std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    operation_.resume_when_done(waiting_, waiter);
    start(deadline_after(duration_), [](Timer& self) noexcept { static_cast<within&>(self).end(); });
  }
  [[nodiscard]] OpResult await_resume() noexcept {
    stop();
    return operation_gone_ ? OpResult{Status::canceled, 0} : operation_.result();
  }

 private:
  void end() noexcept {
    if (waiting_.waits()) return operation_.give_up(Status::timed_out);
    operation_gone_ = true;
    waiter_.resume();
  }

  Operation& operation_;
  std::chrono::nanoseconds duration_;
  std::coroutine_handle<> waiter_;
  bool operation_gone_ = false;
  detail::Awaiting waiting_;
};

}  // namespace brant
