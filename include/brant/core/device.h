#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/base/kernel_source.h"

namespace brant {

namespace port {
class Device;
}

class Event;
class Stream;

/// What is known of a device.
struct DeviceInfo {
  MemoryKind kind = MemoryKind::host;  ///< cuda, emulated, or host: the process works without a device.
  int ordinal = -1;                    ///< As this process counts; -1: none.
  std::string name;                    ///< "NVIDIA H200", "emulated", "host".
  std::string id;                      ///< Its UUID as nvidia-smi writes it, or another name unique on the host.
  std::size_t memory_bytes = 0;        ///< All of it, whoever uses it; 0: not known.
  int architecture = 0;                ///< Of a CUDA device: ten times the major compute capability plus the minor.
  unsigned processors = 0;             ///< SMs of the device of a Runtime; 0: not known.
  std::string driver;                  ///< "CUDA 13.0 (driver 580.159)" of a Runtime's GPU; else empty.
  bool streams = false;                ///< It has streams and events.
  bool kernels = false;                ///< It runs kernels.
  bool shares_memory = false;          ///< Other processes of this host can map its memory.
};

/// The CUDA GPUs this process may use, those of CUDA_VISIBLE_DEVICES in that order; a Runtime takes the one of its
/// local rank (`Runtime::device`). `why_none`, if given, says in words why the list is empty, else it becomes empty.
/// Makes no context, but initialises the driver (some hundred ms, once): not before a fork whose child uses a GPU. Any
/// thread. Throws bad_alloc alone.
BRANT_API std::vector<DeviceInfo> list_gpus(std::string* why_none = nullptr);

/// The device of a Runtime: a handle that is copied freely and does not own it. Valid while the Runtime lives. Any
/// thread may call it.
///
///     brant::Stream stream = runtime.device().create_stream();
///     brant::Memory field = runtime.allocate(runtime.device_kind(), bytes);
///     brant::Status queued = stream.fill(field, std::byte{0});
///     if (queued == brant::Status::ok) queued = stream_channel.send(field, {.stream = stream});
class BRANT_API Device {
 public:
  /// What `Runtime::allocate` gives out for its kernels: cuda, emulated; host without a device.
  [[nodiscard]] MemoryKind kind() const noexcept;
  /// Copies some strings.
  [[nodiscard]] DeviceInfo info() const;

  /// Runs beside all other streams, CUDA's default stream included. Throws not_supported (a process without a device),
  /// no_memory, limit_reached, device_failed. Costs a call of the driver, of an emulated device a thread.
  [[nodiscard]] Stream create_stream(StreamPriority priority = StreamPriority::normal) const;
  /// A stream that the program made itself, a CUstream or cudaStream_t of this device: it stays the program's, and must
  /// outlive what is returned. CUDA's default stream has the names CU_STREAM_LEGACY and CU_STREAM_PER_THREAD; null is
  /// refused with invalid_argument. Throws that, and not_supported. Costs nothing.
  [[nodiscard]] Stream borrow_stream(void* native) const;

  /// A point in a stream that others can wait for. Throws as create_stream does. Costs a call of the driver: keep them.
  [[nodiscard]] Event create_event() const;
  /// One that also notes when it was reached, for Event::us_since; it costs the stream a little more.
  [[nodiscard]] Event create_timing_event() const;

  /// The inner side, for the layers above core.
  [[nodiscard]] port::Device& inner() const noexcept { return *device_; }

 private:
  friend class Runtime;
  explicit Device(port::Device& device) noexcept : device_(&device) {}

  port::Device* device_;
};

}  // namespace brant
