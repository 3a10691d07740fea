#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/base/intrusive_list.h"
#include "brant/base/status.h"
#include "brant/core/op.h"
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
  port::Event* event = nullptr;  ///< Null once the stream has come there.
  Op op;                         ///< Resumes who waits.
  Status status = Status::ok;
};

BRANT_API void start_mark(Runtime& runtime, port::Stream* stream, StreamMark& mark);
BRANT_API void start_copy(Runtime& runtime, Buffer destination, ConstBuffer source, StreamMark& mark);
/// Nobody waits for it any more.
BRANT_API void drop_mark(StreamMark& mark) noexcept;
/// The same, and the copy before it has ended: it must not outlive its buffers.
BRANT_API void drop_copy(StreamMark& mark) noexcept;
/// `waiter` is resumed, from progress, when the stream has come there.
BRANT_API void await_mark(StreamMark& mark, std::coroutine_handle<> waiter) noexcept;
BRANT_API void check_mark(const StreamMark& mark, const char* what);

/// An object of its own: g++ 12 awaits a *copy* of an awaiter that is reached by reference.
struct MarkAwaiter {
  StreamMark& mark;
  const char* what;
  bool await_ready() const noexcept { return mark.event == nullptr; }
  void await_suspend(std::coroutine_handle<> waiter) const noexcept { await_mark(mark, waiter); }
  void await_resume() const { check_mark(mark, what); }
};

}  // namespace detail

/// `co_await stream_done(runtime, stream)`: resumes when everything queued on the device stream so far has run. The
/// worker is never blocked: an event is recorded here and looked at by progress. `stream` is
/// a `Stream` of the runtime's device (brant/device.h). Throws what the device reports (device_failed), not_supported
/// without a device. Worker's thread; allocates only when more are awaited at once than ever before. Destroying it
/// earlier does not wait.
class [[nodiscard]] stream_done {
 public:
  stream_done(Runtime& runtime, port::Stream* stream) { detail::start_mark(runtime, stream, mark_); }
  stream_done(const stream_done&) = delete;
  stream_done& operator=(const stream_done&) = delete;
  ~stream_done() { detail::drop_mark(mark_); }

  auto operator co_await() noexcept { return detail::MarkAwaiter{mark_, "a device stream"}; }

 private:
  detail::StreamMark mark_;
};

/// `co_await copy_done(runtime, destination, source)`: copies between any two memories of this process, on a stream of
/// the runtime's own, without blocking the worker. Both buffers stay valid until it is done; destroying it earlier
/// waits for the copy, for 10 s at most: then an error says that the device may still use the buffers. Throws
/// invalid_argument (sizes differ), what the device reports.
class [[nodiscard]] copy_done {
 public:
  copy_done(Runtime& runtime, Buffer destination, ConstBuffer source) {
    detail::start_copy(runtime, destination, source, mark_);
  }
  copy_done(const copy_done&) = delete;
  copy_done& operator=(const copy_done&) = delete;
  ~copy_done() { detail::drop_copy(mark_); }

  auto operator co_await() noexcept { return detail::MarkAwaiter{mark_, "a copy"}; }

 private:
  detail::StreamMark mark_;
};

}  // namespace brant
