#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "brant/base/status.h"
#include "brant/core/op.h"
#include "brant/core/wait_place.h"

namespace brant {

template <typename T>
class Promise;

namespace detail {

/// A void future carries this.
struct Unit {};

/// What a future throws whose promise went without delivering; where there is no memory for that, std::bad_alloc.
inline std::exception_ptr given_up() noexcept {
  try {
    return std::make_exception_ptr(Error(Status::canceled, "the promise was given up"));
  } catch (...) {
    return std::current_exception();
  }
}

template <typename T>
struct FutureState {
  using Value = std::conditional_t<std::is_void_v<T>, Unit, T>;
  std::optional<Value> value;
  std::exception_ptr error;
  WaitPlace waiter;
  Completion sink;

  [[nodiscard]] bool ready() const noexcept { return value.has_value() || error != nullptr; }
  /// Tells who waits, last of all: whoever is told may destroy future and promise, and this record with them.
  void wake() noexcept {
    if (sink.fire == nullptr) {
      waiter.resume();
      return;
    }
    const Completion due = std::exchange(sink, {});
    due.fire(due.self, {error ? Status::internal : Status::ok, 0});
  }
};

}  // namespace detail

/// A value that somebody will deliver. One owner, one waiter, the worker's thread; making the pair allocates once.
/// `co_await future` gives the value, or throws what the promise was failed with; while another coroutine waits it
/// throws invalid_argument.
template <typename T = void>
class [[nodiscard]] Future {
 public:
  Future(Future&&) noexcept = default;
  Future& operator=(Future&& other) noexcept {
    abandon();
    state_ = std::move(other.state_);
    return *this;
  }
  ~Future() { abandon(); }

  [[nodiscard]] bool ready() const noexcept { return state_->ready(); }

  /// The value of a ready future; throws what it was failed with, and invalid_argument if it is not ready.
  T get() {
    if (!ready())
      throw Error(Status::invalid_argument,
                  "this future has no value yet: co_await it, or get it once `ready()` says so");
    if (state_->error) std::rethrow_exception(state_->error);
    if constexpr (!std::is_void_v<T>) return std::move(*state_->value);
  }

  /// Tells a sink instead of a coroutine. At once if ready.
  void notify(Completion sink) noexcept {
    state_->sink = sink;
    if (ready()) state_->wake();
  }

  auto operator co_await() noexcept { return Awaiter{*this}; }

 private:
  // An object of its own: g++ 12 awaits a *copy* of an awaiter that a lambda captured by reference.
  struct Awaiter {
    Future& future;
    detail::Awaiting waiting = {};
    bool await_ready() const noexcept { return future.ready(); }
    void await_suspend(std::coroutine_handle<> waiter) { future.state_->waiter.admit(waiting, waiter); }
    T await_resume() const { return future.get(); }
  };

  friend class Promise<T>;
  explicit Future(std::shared_ptr<detail::FutureState<T>> state) noexcept : state_(std::move(state)) {}

  /// A future that goes away is no longer waited for: a late delivery must not resume a coroutine that is gone.
  void abandon() noexcept {
    if (!state_) return;
    state_->waiter.clear();
    state_->sink = {};
  }

  std::shared_ptr<detail::FutureState<T>> state_;
};

/// The delivering side. A promise that is destroyed or assigned over without delivering fails its future with
/// `canceled`. Whoever waits is resumed inside the call, and may destroy the promise.
template <typename T = void>
class Promise {
 public:
  Promise() : state_(std::make_shared<detail::FutureState<T>>()) {}
  Promise(Promise&&) noexcept = default;
  Promise& operator=(Promise&& other) noexcept {
    Promise incoming(std::move(other));
    std::swap(state_, incoming.state_);  // what this one had promised is given up with `incoming`
    return *this;
  }
  ~Promise() {
    if (state_ && !state_->ready()) fail(detail::given_up());
  }

  /// The future that this promise delivers to. To be asked for once.
  Future<T> future() { return Future<T>(state_); }

  template <typename... Args>
  void deliver(Args&&... args) {
    if (state_->ready()) throw Error(Status::invalid_argument, "a promise delivers once");
    state_->value.emplace(std::forward<Args>(args)...);
    state_->wake();
  }
  void fail(std::exception_ptr error) noexcept {
    if (state_->ready()) return;
    state_->error = std::move(error);
    state_->wake();
  }

 private:
  std::shared_ptr<detail::FutureState<T>> state_;
};

}  // namespace brant
