#pragma once

#include <concepts>
#include <coroutine>

#include "brant/core/op.h"
#include "brant/core/task.h"
#include "brant/core/wait_place.h"

namespace brant {

/// An operation that was started where the object was made, and can be awaited. Stays where it is (not movable), lives
/// in the coroutine frame, allocates nothing:
///
///     Operation incoming = channel.recv(ghost);   // both are under way
///     Operation outgoing = channel.send(face);
///     OpResult got = co_await incoming;
///     OpResult sent = co_await outgoing;          // look at both: `ok()`, or why not
///
/// or, where any failure ends the work: `(co_await when_all(incoming, outgoing)).or_throw("the halo exchange failed")`.
/// Outside coroutines `runtime.wait(incoming, outgoing)` waits for them.
///
/// One coroutine at a time awaits it: the `co_await` of a second one throws invalid_argument, and the first goes on
/// waiting. Once done it may be awaited any number of times.
///
/// Destroying it while pending withdraws a receive, or drops the message if that lies in the buffer already; a send
/// goes on unobserved, and its source must stay valid until the channel closes.
class [[nodiscard]] Operation {
 public:
  /// `post(Op&)` starts the operation and returns its Status. `moment` is the one awaited.
  template <typename Post>
  Operation(Moment moment, Post&& post) noexcept {
    (moment == Moment::source_free ? op_.source_free : op_.delivered) = {&Operation::fired, this};
    const Status posted = post(op_);
    done_ = posted != Status::in_progress;
    if (done_) op_.result.status = posted;
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  [[nodiscard]] bool done() const noexcept { return done_; }
  /// Valid once done.
  [[nodiscard]] const OpResult& result() const noexcept { return op_.result; }
  [[nodiscard]] Op& op() noexcept { return op_; }

  auto operator co_await() noexcept { return Awaiter{*this}; }

  /// Resumes `waiter` once it is done, unless `waiting` has gone by then. For awaiters like `within`. Throws
  /// invalid_argument while another one waits.
  void resume_when_done(detail::Awaiting& waiting, std::coroutine_handle<> waiter) { waiter_.admit(waiting, waiter); }

  /// Ends a pending operation here and now with `status`: withdrawn as far as possible (see `Op::detach`), and the
  /// waiter resumes. One whose outcome is known and only waits to be told keeps it, and is done in one of the next
  /// progress calls: a message that was received is not lost.
  void give_up(Status status) noexcept {
    if (done_ || op_.due()) return;
    op_.detach();
    op_.result = {status, 0};
    finish();
  }

 private:
  // An object of its own: g++ 12 awaits a *copy* of an awaiter that a lambda captured by reference.
  struct Awaiter {
    Operation& operation;
    detail::Awaiting waiting = {};
    bool await_ready() const noexcept { return operation.done_; }
    void await_suspend(std::coroutine_handle<> waiter) { operation.resume_when_done(waiting, waiter); }
    [[nodiscard]] OpResult await_resume() const noexcept { return operation.op_.result; }
  };

  static void fired(void* self, const OpResult&) noexcept { static_cast<Operation*>(self)->finish(); }
  void finish() noexcept {
    done_ = true;
    waiter_.resume();
  }

  Op op_;
  bool done_ = false;
  detail::WaitPlace waiter_;
};

/// Awaits operations that are all under way: the first failure (in argument order), or ok with the sum of the bytes.
/// All have ended then, whatever became of each. They must outlive the task. Cost: one coroutine frame; a `Counter`
/// needs none.
template <std::same_as<Operation>... More>
Task<OpResult> when_all(Operation& first, Operation& second, More&... more) {
  Operation* const operations[] = {&first, &second, &more...};
  OpResult total;
  for (Operation* operation : operations) total.join(co_await *operation);
  co_return total;
}

}  // namespace brant
