#pragma once

#include <coroutine>
#include <cstddef>
#include <memory>
#include <utility>

#include "brant/core/op.h"
#include "brant/core/wait_place.h"

namespace brant {

/// Many operations of any kind under way at once, a bounded number of them: sends and receives of channels, puts, gets.
/// It owns their records, and gives each back as soon as its operation has ended, in whatever order that happens:
///
///     Window window(64);
///     for (const ConstBuffer piece : pieces) {
///       if (!(co_await window.slot()).ok()) break;  // waits while 64 are under way
///       window.add(Moment::source_free, [&](Op& op) noexcept { return channel.post_send(piece, op); });
///     }
///     (co_await window.drain()).or_throw("the pieces were not sent");
///
/// Outside coroutines `runtime.wait(window.slot())` and `runtime.wait(window.drain())` do the same.
///
/// Belongs to the worker's thread and stays where it is (not movable). Allocates where it is made and never again. One
/// coroutine at a time awaits it: the `co_await` of a second one throws invalid_argument.
///
/// Destroying it with operations under way does not wait: it withdraws them, as `withdraw` does. A coroutine that
/// awaits it then is never resumed.
class Window {
 public:
  class Wait;

  /// `slots` operations may be under way. Throws invalid_argument (none), bad_alloc. Costs about 110 bytes each.
  explicit Window(std::size_t slots) : slots_(allocate(slots)), size_(slots) {
    for (std::size_t i = slots; i > 0; --i) release(slots_[i - 1]);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// To be awaited: a slot is free. Gives what `result` says by then, so that a loop can end at the first failure.
  [[nodiscard]] Wait slot() noexcept;
  /// To be awaited: all have ended. Gives the first failure, in the order in which they came, or ok, with the sum of
  /// the bytes moved since the last drain; after that the window begins anew.
  [[nodiscard]] Wait drain() noexcept;

  /// Starts an operation in a free slot: `post(op)` posts the record it is given, for instance by
  /// `channel.post_send(source, op)`, and returns what that returned. The slot is in use until `until`. What the post
  /// refused counts as an operation that failed; so does one for which no slot was free, with limit_reached: it is not
  /// posted.
  template <typename Post>
  void add(Moment until, Post&& post) noexcept {
    if (free_ == nullptr) return total_.join({Status::limit_reached, 0});
    Slot& slot = *std::exchange(free_, free_->next_free);
    slot.window = this;
    (until == Moment::source_free ? slot.op.source_free : slot.op.delivered) = {&Window::fired, &slot};
    const Status posted = post(slot.op);
    ++pending_;
    if (posted != Status::in_progress) end(slot, {posted, slot.op.result.bytes});
  }

  /// Ends all that are under way here and now, as far as that is possible (see `Op::detach`), and frees their slots. A
  /// send, put or get that cannot be withdrawn goes on unobserved: its buffer must stay valid until the channel closes,
  /// or until the segment has nothing pending. What was withdrawn counts as `canceled`.
  void withdraw() noexcept {
    if (pending_ == 0) return;
    for (std::size_t i = 0; i < size_; ++i) {
      Slot& slot = slots_[i];
      if (slot.window == nullptr) continue;
      const bool pending = slot.op.pending();  // not any more if its runtime has ended
      if (pending) slot.op.detach();
      end(slot, pending ? OpResult{Status::canceled, 0} : slot.op.result);
    }
    wake();
  }

  [[nodiscard]] std::size_t pending() const noexcept { return pending_; }
  /// Of those that have ended since the last drain.
  [[nodiscard]] const OpResult& result() const noexcept { return total_; }

 private:
  struct Slot {
    Op op;
    Window* window = nullptr;  ///< Null while it is free.
    Slot* next_free = nullptr;
  };

  static std::unique_ptr<Slot[]> allocate(std::size_t slots) {
    if (slots == 0) throw Error(Status::invalid_argument, "a window of no operations: give it one slot at least");
    return std::make_unique<Slot[]>(slots);
  }
  static void fired(void* slot, const OpResult& outcome) noexcept {
    Window& window = *static_cast<Slot*>(slot)->window;
    window.end(*static_cast<Slot*>(slot), outcome);
    window.wake();
  }
  void end(Slot& slot, const OpResult& outcome) noexcept {
    total_.join(outcome);
    --pending_;
    release(slot);
  }
  void release(Slot& slot) noexcept {
    // A post that ended at once has left its sink in place. One by one: the second would wait for the bytes of the
    // first.
    slot.op.source_free = {};
    slot.op.delivered = {};
    slot.window = nullptr;
    slot.next_free = std::exchange(free_, &slot);
  }
  /// Last of all: whoever is resumed may destroy the window.
  void wake() noexcept {
    if (pending_ <= most_) waiter_.resume();
  }

  std::unique_ptr<Slot[]> slots_;
  std::size_t size_;
  std::size_t pending_ = 0;
  Slot* free_ = nullptr;
  OpResult total_;
  std::size_t most_ = 0;  ///< So many may be under way for whoever waits to go on.
  detail::WaitPlace waiter_;
};

/// What is awaited of a window: that so few are under way. `co_await` it, or give it to `Runtime::wait`; the window
/// outlives it.
class [[nodiscard]] Window::Wait {
 public:
  [[nodiscard]] bool done() const noexcept { return window_->pending_ <= most_; }
  /// The outcome, once done; of a drain it begins the window anew.
  OpResult take() const noexcept { return drains_ ? std::exchange(window_->total_, {}) : window_->total_; }

  auto operator co_await() const noexcept { return Awaiter{*window_, most_, drains_}; }

 private:
  friend class Window;
  // An object of its own: g++ 12 awaits a *copy* of an awaiter that a lambda captured by reference.
  struct Awaiter {
    Window& window;
    std::size_t most;
    bool drains;
    detail::Awaiting waiting = {};
    bool await_ready() const noexcept { return window.pending_ <= most; }
    void await_suspend(std::coroutine_handle<> waiter) {
      window.waiter_.admit(waiting, waiter);
      window.most_ = most;
    }
    [[nodiscard]] OpResult await_resume() const noexcept { return Wait(window, most, drains).take(); }
  };

  Wait(Window& window, std::size_t most, bool drains) noexcept : window_(&window), most_(most), drains_(drains) {}

  Window* window_;
  std::size_t most_;
  bool drains_;
};

inline Window::Wait Window::slot() noexcept { return {*this, size_ - 1, false}; }
inline Window::Wait Window::drain() noexcept { return {*this, 0, true}; }

}  // namespace brant
