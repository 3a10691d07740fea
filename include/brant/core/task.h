#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "brant/base/status.h"
#include "brant/core/wait_place.h"

namespace brant {

template <typename T = void>
class Task;

namespace detail {

/// Counts tasks that run together; the last one to end resumes the waiter.
struct JoinCounter {
  std::size_t remaining = 0;
  WaitPlace waiter;
};

struct TaskPromiseBase {
  WaitPlace continuation;  ///< Who resumes when this task has ended; nobody while it still runs inside its awaiter.
  JoinCounter* join = nullptr;  ///< Whom to count down instead.
  std::exception_ptr exception;
  bool started = false;  ///< A frame that is resumed again from outside would go on wherever it waits.

  /// Resumes by plain calls, not by symmetric transfer: compilers turn the latter into a jump only when they optimise,
  /// and a loop over tasks that end at once would grow the stack of a debug build.
  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <typename Promise>
    void await_suspend(std::coroutine_handle<Promise> finished) const noexcept {
      TaskPromiseBase& promise = finished.promise();
      if (promise.join != nullptr) {
        if (--promise.join->remaining == 0) promise.join->waiter.resume();
      } else {
        promise.continuation.resume();  // may destroy this frame
      }
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { exception = std::current_exception(); }
  void rethrow() const {
    if (exception) std::rethrow_exception(exception);
  }
};

template <typename T>
struct TaskPromise : TaskPromiseBase {
  std::optional<T> value;

  Task<T> get_return_object() noexcept;
  template <typename U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() {
    rethrow();
    return std::move(*value);
  }
};

template <>
struct TaskPromise<void> : TaskPromiseBase {
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void take() const { rethrow(); }
};

}  // namespace detail

/// A coroutine that starts when it is awaited (or run by `Runtime::run`) and resumes who awaits it when it ends.
/// Exceptions travel to the awaiter. It runs once: starting, running or awaiting one that was started before, or moved
/// from, throws invalid_argument. Owns its frame: destroying an unfinished task ends it, and operations of its frame
/// are detached.
template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::TaskPromise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      destroy();
      handle_ = std::exchange(other.handle_, {});
    }
    return *this;
  }
  ~Task() { destroy(); }

  auto operator co_await() && noexcept {
    struct Awaiter {
      Handle handle;
      detail::Awaiting waiting = {};
      bool await_ready() const noexcept { return false; }
      bool await_suspend(std::coroutine_handle<> waiter) {
        begin(handle).resume();
        if (handle.done()) return false;
        handle.promise().continuation.admit(waiting, waiter);
        return true;
      }
      T await_resume() const { return handle.promise().take(); }
    };
    return Awaiter{handle_};
  }

  /// Runs the coroutine until its first suspension; nobody is resumed at its end: ask `finished`.
  void start() { begin(handle_).resume(); }
  /// The same, counting `join` down at the end.
  void start(detail::JoinCounter& join) {
    begin(handle_).promise().join = &join;
    handle_.resume();
  }
  [[nodiscard]] bool finished() const noexcept { return handle_.done(); }
  /// The result of a finished task; throws what it threw.
  T take() { return handle_.promise().take(); }

 private:
  /// Notes that it is resumed for the first time. Throws if that is not so.
  static Handle begin(Handle handle) {
    if (!handle || handle.promise().started) [[unlikely]]
      throw Error(Status::invalid_argument,
                  "a task runs once: this one was started before, or moved from. Call its coroutine function again for "
                  "another run; the result of one that has finished is `take()`");
    handle.promise().started = true;
    return handle;
  }
  void destroy() noexcept {
    if (handle_) handle_.destroy();
  }

  Handle handle_;
};

namespace detail {

template <typename T>
Task<T> TaskPromise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<TaskPromise<T>>::from_promise(*this));
}
inline Task<void> TaskPromise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<TaskPromise<void>>::from_promise(*this));
}

/// Suspends until every task that `counter` counts has ended. `start_all` starts them; one of them may end at once.
template <typename StartAll>
struct JoinAwaiter {
  JoinCounter& counter;
  StartAll start_all;
  Awaiting waiting = {};

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiter) {
    ++counter.remaining;  // held by this function, so that no early end resumes the waiter before it is suspended
    counter.waiter.admit(waiting, waiter);
    start_all(counter);
    return --counter.remaining != 0;
  }
  void await_resume() const noexcept {}
};
template <typename StartAll>
JoinAwaiter(JoinCounter&, StartAll) -> JoinAwaiter<StartAll>;

}  // namespace detail

/// Runs the tasks together; ends when all have ended. The first exception (in argument order) is rethrown then.
template <typename... Ts>
Task<void> when_all(Task<Ts>... tasks) {
  detail::JoinCounter counter{sizeof...(tasks), {}};
  std::tuple<Task<Ts>...> running(std::move(tasks)...);  // goes before the counter: a task that goes may end another
  co_await detail::JoinAwaiter{counter, [&](detail::JoinCounter& join) {
                                 std::apply([&](auto&... each) { (each.start(join), ...); }, running);
                               }};
  std::apply([](auto&... each) { (static_cast<void>(each.take()), ...); }, running);
}

/// The same for a number of tasks known at run time.
inline Task<void> when_all(std::vector<Task<void>> tasks) {
  detail::JoinCounter counter{tasks.size(), {}};
  std::vector<Task<void>> running = std::move(tasks);  // goes before the counter: a task that goes may end another
  co_await detail::JoinAwaiter{counter, [&](detail::JoinCounter& join) {
                                 for (Task<void>& task : running) task.start(join);
                               }};
  for (Task<void>& task : running) task.take();
}

}  // namespace brant
