#pragma once

#include <coroutine>
#include <cstdint>

#include "brant/base/api.h"
#include "brant/chare/chare.h"
#include "brant/chare/detail/core.h"

/// Entry methods that are coroutines: the driver of each (brant/core/task_driver.h) stands in its chare's list, so that
/// it ends with the chare.
namespace brant::detail {

struct BRANT_API RunningTask {
  RunningTask(const Invocation& of, std::coroutine_handle<> in) noexcept;
  ~RunningTask();
  RunningTask(const RunningTask&) = delete;
  RunningTask& operator=(const RunningTask&) = delete;

  Invocation invocation;
  std::coroutine_handle<> frame;
  RunningTask* next = nullptr;
  RunningTask* previous = nullptr;
  std::int64_t since = 0;  ///< `coarse_now`.
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

}  // namespace brant::detail
