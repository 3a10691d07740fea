#pragma once

#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>

#include "brant/core/task.h"

/// Functions that are called by messages and are coroutines: a driver awaits each, and answers at its end.
namespace brant::detail {

/// The coroutine type of `drive`: runs at once, and frees its frame when it ends. `Running` is the record of it while
/// it runs, made of the invocation and the frame: by way of that whoever called can end it early.
template <typename Running>
struct TaskDriver {
  struct promise_type : Running {  // NOLINT(readability-identifier-naming): the language's
    template <typename Invocation, typename... Rest>
    explicit promise_type(const Invocation& of, Rest&...) noexcept
        : Running(of, std::coroutine_handle<promise_type>::from_promise(*this)) {}
    TaskDriver get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }  // `drive` lets none out
  };
};

/// Of the namespace of the invocation are `answer(invocation, result)`, without a result for void, if
/// `invocation.is_asked()`, and `fail_invocation(invocation, error)`.
template <typename Running, typename Invocation, typename T>
TaskDriver<Running> drive(Invocation invocation, Task<T> task) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(task);
      if (invocation.is_asked()) answer(invocation);
    } else {
      T result = co_await std::move(task);
      if (invocation.is_asked()) answer(invocation, result);
    }
  } catch (...) {
    fail_invocation(invocation, std::current_exception());
  }
}

}  // namespace brant::detail
