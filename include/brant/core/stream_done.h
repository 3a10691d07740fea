#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>

#include "brant/base/buffer.h"
#include "brant/base/intrusive_list.h"
#include "brant/base/status.h"
#include "brant/core/runtime.h"

namespace brant {

namespace port {
struct Event;
struct Stream;
}  // namespace port

namespace detail {

class StreamWatch;

/// A point in a stream that somebody waits for.
struct StreamMark {
  ListHook<StreamMark> hook;
  StreamWatch* watch = nullptr;
  port::Event* event = nullptr;
  std::coroutine_handle<> waiter;
  Status status = Status::ok;
};

void start_mark(Runtime& runtime, port::Stream* stream, StreamMark& mark);
void start_copy(Runtime& runtime, Buffer destination, ConstBuffer source, StreamMark& mark);
/// Waits: the copy that it stands behind must not outlive its buffers.
void drop_mark(StreamMark& mark) noexcept;
void check_mark(const StreamMark& mark, const char* what);

}  // namespace detail

/// `co_await stream_done(runtime, stream)`: resumes when everything queued on the device stream so far has run. The
/// worker is never blocked: an event is recorded here and looked at by progress. `stream` comes from
/// `runtime.device().streams()` (port/memory.h). Throws what the device reports (device_failed), not_supported without
/// a device. Worker's thread; allocates only when more are awaited at once than ever before.
class [[nodiscard]] stream_done {
 public:
  stream_done(Runtime& runtime, port::Stream* stream) { detail::start_mark(runtime, stream, mark_); }
  stream_done(const stream_done&) = delete;
  stream_done& operator=(const stream_done&) = delete;
  ~stream_done() { detail::drop_mark(mark_); }

  bool await_ready() const noexcept { return mark_.event == nullptr; }
  void await_suspend(std::coroutine_handle<> waiter) noexcept { mark_.waiter = waiter; }
  void await_resume() const { detail::check_mark(mark_, "a device stream"); }

 private:
  detail::StreamMark mark_;
};

/// `co_await copy_done(runtime, destination, source)`: copies between any two memories of this process, on a stream of
/// the runtime's own, without blocking the worker. Both buffers stay valid until it is done; destroying it earlier
/// waits. Throws invalid_argument (sizes differ), what the device reports.
class [[nodiscard]] copy_done {
 public:
  copy_done(Runtime& runtime, Buffer destination, ConstBuffer source) {
    detail::start_copy(runtime, destination, source, mark_);
  }
  copy_done(const copy_done&) = delete;
  copy_done& operator=(const copy_done&) = delete;
  ~copy_done() { detail::drop_mark(mark_); }

  bool await_ready() const noexcept { return mark_.event == nullptr; }
  void await_suspend(std::coroutine_handle<> waiter) noexcept { mark_.waiter = waiter; }
  void await_resume() const { detail::check_mark(mark_, "a copy"); }

 private:
  detail::StreamMark mark_;
};

}  // namespace brant
