#pragma once

#include <cstddef>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/base/result.h"
#include "brant/base/status.h"

namespace brant {

namespace port {
class Device;
struct Event;
struct Stream;
}  // namespace port

/// A stream as calls take it: opaque, the CUstream itself with CUDA. A `Stream` converts to it.
using StreamHandle = port::Stream*;

/// A point in a stream (`Stream::record`) that the program or other streams wait for. Made by `Device::create_event`,
/// and recorded as often as wanted; what waits for it waits for the latest record. Movable; goes before its Runtime.
/// One that was moved from, or made by the default constructor, answers invalid_argument. Used by one thread at a time.
class BRANT_API Event {
 public:
  Event() noexcept = default;
  Event(Event&& other) noexcept : device_(other.device_), event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(event_, other.event_);
    return *this;
  }
  /// May be called while the stream has not come there: whoever waits goes on to wait.
  ~Event();

  /// ok: the stream has come there, or it was never recorded. in_progress, or what the device reports (device_failed).
  /// Does not block; costs a call of the driver. In a coroutine `co_await stream_done(runtime, stream)` is better.
  Status poll() const noexcept;
  /// Microseconds of the device from there to here. Both were made with timing and have been reached, else
  /// invalid_argument or in_progress.
  [[nodiscard]] Result<double> us_since(const Event& earlier) const noexcept;
  /// The CUevent with CUDA. Stays this object's.
  [[nodiscard]] void* native() const noexcept { return event_; }

 private:
  friend class Device;
  friend class Stream;
  Event(port::Device& device, port::Event* event) noexcept : device_(&device), event_(event) {}

  port::Device* device_ = nullptr;
  port::Event* event_ = nullptr;
};

/// A queue of work for a device, done in the order in which it was queued. Made by `Device::create_stream`, or borrowed
/// from the program's own CUDA code. Movable; goes before its Runtime. Used by one thread at a time, and not only the
/// worker's. Calls queue and return at once unless they say otherwise; one that was moved from, or made by the default
/// constructor, answers invalid_argument. Buffers stay the caller's and must be left alone until the stream has passed
/// them.
///
/// Each call is one of the driver: a microsecond or two. What a device finds wrong while it works (a buffer that was
/// freed, a fault of a kernel) is told by a later call as device_failed.
class BRANT_API Stream {
 public:
  Stream() noexcept = default;
  Stream(Stream&& other) noexcept
      : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)), owned_(other.owned_) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  /// Blocks until the work queued on it is done, and gives it back; does neither to one that is borrowed.
  ~Stream();

  /// Between any two memories of this process, one of them the device's or pinned. invalid_argument: the source is
  /// longer. Memory of kind `host` may make the call wait for the copy.
  Status copy(Buffer destination, ConstBuffer source) noexcept;
  /// Sets every byte. Device or pinned memory.
  Status fill(Buffer destination, std::byte value) noexcept;
  /// `event` is reached when everything queued here so far is done.
  Status record(Event& event) noexcept;
  /// What is queued from here on waits for `event`; the caller does not. Of one never recorded nothing waits.
  Status wait_for(const Event& event) noexcept;
  /// ok: all that was queued is done. in_progress, or what the device reports. Does not block.
  Status poll() const noexcept;
  /// Blocks until all that was queued is done, and tells what became of it. The worker does not progress meanwhile:
  /// not where a kernel of that stream waits for a message; `stream_done` is for that.
  Status synchronize() noexcept;

  /// Of an empty one null.
  operator StreamHandle() const noexcept { return stream_; }  // NOLINT(google-explicit-constructor): as an argument
  /// For calls of CUDA: the CUstream, which cudaStream_t is too. Stays this object's. An emulated device's has no
  /// meaning but to `Device::borrow_stream` of the same process.
  [[nodiscard]] void* native() const noexcept { return stream_; }

 private:
  friend class Device;
  Stream(port::Device& device, port::Stream* stream, bool owned) noexcept
      : device_(&device), stream_(stream), owned_(owned) {}

  port::Device* device_ = nullptr;
  port::Stream* stream_ = nullptr;
  bool owned_ = false;
};

}  // namespace brant
