#pragma once

#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>

#include "brant/base/api.h"
#include "brant/chare/chare.h"
#include "brant/chare/detail/core.h"
#include "brant/core/task.h"

/// Entry methods that are coroutines: a driver awaits each, answers at its end, and stands in its chare's list so that
/// it ends with the chare.
namespace brant::detail {

struct BRANT_API RunningTask {
  explicit RunningTask(const Invocation& of) noexcept;
  ~RunningTask();
  RunningTask(const RunningTask&) = delete;
  RunningTask& operator=(const RunningTask&) = delete;

  Invocation invocation;
  std::coroutine_handle<> frame;
  RunningTask* next = nullptr;
  RunningTask* previous = nullptr;
  std::int64_t since = 0;  ///< `coarse_now`.
};

/// The coroutine type of `drive`: runs at once, and frees its frame when it ends.
struct Driver {
  struct promise_type : RunningTask {
    template <typename... Rest>
    explicit promise_type(const Invocation& of, Rest&...) noexcept : RunningTask(of) {
      frame = std::coroutine_handle<promise_type>::from_promise(*this);
    }
    Driver get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }  // `drive` lets none out
  };
};

/// Packs a result and sends it to whoever waits.
template <typename... Result>
void answer(const Invocation& invocation, const Result&... result) {
  SizeArchive size;
  size(result...);
  Outgoing outgoing = open_reply(invocation, size.size());
  WriteArchive write(outgoing.args);
  write(result...);
  post(*invocation.core, outgoing);
}

template <typename T>
Driver drive(Invocation invocation, Task<T> task) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(task);
      if (invocation.reply != 0) answer(invocation);
    } else {
      T result = co_await std::move(task);
      if (invocation.reply != 0) answer(invocation, result);
    }
  } catch (...) {
    fail_invocation(invocation, std::current_exception());
  }
}

}  // namespace brant::detail
