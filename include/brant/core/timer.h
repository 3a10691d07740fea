#pragma once

#include <chrono>
#include <coroutine>
#include <cstddef>

#include "brant/base/clock.h"
#include "brant/core/operation.h"
#include "brant/core/worker.h"

namespace brant {

/// Runs `fire` from `Worker::progress` at or after `when`. Lies in the record it serves and must be idle or cleared
/// before that goes.
struct Timer {
  TimePoint when = kNever;
  void (*fire)(Timer& self) noexcept = nullptr;
  std::size_t place = kIdle;  ///< In the queue's heap.

  static constexpr std::size_t kIdle = ~std::size_t{0};
};

/// `co_await sleep_for(worker, 5ms)`: others run meanwhile.
class [[nodiscard]] sleep_for final : private Timer {
 public:
  sleep_for(Worker& worker, std::chrono::nanoseconds duration) noexcept : worker_(worker), duration_(duration) {}
  sleep_for(const sleep_for&) = delete;
  sleep_for& operator=(const sleep_for&) = delete;
  ~sleep_for() { worker_.clear_timer(*this); }

  bool await_ready() const noexcept { return duration_ <= std::chrono::nanoseconds::zero(); }
  void await_suspend(std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    fire = [](Timer& self) noexcept { static_cast<sleep_for&>(self).waiter_.resume(); };
    worker_.set_timer(*this, deadline_after(duration_));
  }
  void await_resume() const noexcept {}

 private:
  Worker& worker_;
  std::chrono::nanoseconds duration_;
  std::coroutine_handle<> waiter_;
};

/// `co_await yield(worker)`, in a task that computes for long: the network moves, and whatever else is due here runs,
/// completions, messages of chares and other tasks that yield; then the task goes on, in a later progress. Nobody ends
/// it if nothing else is due: a task that yields until something happens keeps its core busy. Costs some hundred
/// nanoseconds when there is nothing else; allocates as `Worker::set_timer` does.
class [[nodiscard]] yield final : private Timer {
 public:
  explicit yield(Worker& worker) noexcept : worker_(worker) {}
  yield(const yield&) = delete;
  yield& operator=(const yield&) = delete;
  ~yield() { worker_.clear_timer(*this); }

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    fire = [](Timer& self) noexcept { static_cast<yield&>(self).waiter_.resume(); };
    worker_.set_timer(*this, Clock::now());  // later than what the present round of timers calls now
  }
  void await_resume() const noexcept {}

 private:
  Worker& worker_;
  std::coroutine_handle<> waiter_;
};

/// `co_await within(worker, operation, 5ms)`: the operation's outcome, or `timed_out`. A receive that timed out is
/// withdrawn and gives its turn to the next; a send that the network already works on goes on unobserved, so its source
/// must stay valid until the channel closes.
class [[nodiscard]] within final : private Timer {
 public:
  within(Worker& worker, Operation& operation, std::chrono::nanoseconds duration) noexcept
      : worker_(worker), operation_(operation), duration_(duration) {}
  within(const within&) = delete;
  within& operator=(const within&) = delete;
  ~within() { worker_.clear_timer(*this); }

  bool await_ready() const noexcept { return operation_.done(); }
  void await_suspend(std::coroutine_handle<> waiter) {
    operation_.resume_when_done(waiting_, waiter);
    fire = [](Timer& self) noexcept {
      auto& late = static_cast<within&>(self);
      if (late.waiting_.waits()) late.operation_.give_up(Status::timed_out);  // else the operation has gone
    };
    worker_.set_timer(*this, deadline_after(duration_));
  }
  [[nodiscard]] OpResult await_resume() noexcept {
    worker_.clear_timer(*this);
    return operation_.result();
  }

 private:
  Worker& worker_;
  Operation& operation_;
  std::chrono::nanoseconds duration_;
  detail::Awaiting waiting_;
};

}  // namespace brant
