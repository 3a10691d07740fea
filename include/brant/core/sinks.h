#pragma once

#include <coroutine>
#include <cstddef>
#include <utility>

#include "brant/core/op.h"
#include "brant/core/wait_place.h"

namespace brant {

/// Remembers one outcome: for waiting in plain code, `worker.wait_until([&] { return flag.done; })`.
struct Flag {
  bool done = false;
  OpResult result;

  [[nodiscard]] Completion sink() noexcept {
    return {[](void* self, const OpResult& outcome) noexcept {
              auto& flag = *static_cast<Flag*>(self);
              flag.result = outcome;
              flag.done = true;
            },
            this};
  }
};

/// Waits for several operations: pass `sink()` to each and report what every post returned to `track`. `co_await
/// counter` resumes when all tracked operations have ended and gives the first failure, or ok with the sum of the
/// bytes. Reusable after that. One coroutine at a time: a second one's `co_await` throws invalid_argument. It outlives
/// the operations, or these were destroyed or detached before they could report.
class Counter {
 public:
  Counter() = default;
  // The sinks hold its address.
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  [[nodiscard]] Completion sink() noexcept {
    return {[](void* self, const OpResult& outcome) noexcept { static_cast<Counter*>(self)->ended(outcome); }, this};
  }

  /// `posted` is what the post returned, `op` the record it was given.
  void track(Status posted, const Op& op) noexcept {
    if (posted == Status::in_progress) {
      ++pending_;
    } else {
      total_.join({posted, op.result.bytes});
    }
  }

  [[nodiscard]] std::size_t pending() const noexcept { return pending_; }
  [[nodiscard]] const OpResult& result() const noexcept { return total_; }

  auto operator co_await() noexcept { return Awaiter{*this}; }

 private:
  // An object of its own: g++ 12 awaits a *copy* of an awaiter that a lambda captured by reference.
  struct Awaiter {
    Counter& counter;
    detail::Awaiting waiting = {};
    bool await_ready() const noexcept { return counter.pending_ == 0; }
    void await_suspend(std::coroutine_handle<> waiter) { counter.waiter_.admit(waiting, waiter); }
    [[nodiscard]] OpResult await_resume() const noexcept { return std::exchange(counter.total_, {}); }
  };

  void ended(const OpResult& outcome) noexcept {
    total_.join(outcome);
    if (--pending_ == 0) waiter_.resume();
  }

  std::size_t pending_ = 0;
  OpResult total_;
  detail::WaitPlace waiter_;
};

}  // namespace brant
