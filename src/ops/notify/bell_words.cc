#include "ops/notify/bell_words.h"

#include <algorithm>
#include <cstring>

namespace brant {
namespace {

/// From this size on the other processes of the host can map what is allocated (`Runtime::allocate`).
constexpr std::size_t kSharedBytesMin = 16 * 1024;

std::size_t rounded(std::size_t bytes, std::size_t step) noexcept { return (bytes + step - 1) / step * step; }

}  // namespace

BellWords::~BellWords() {
  port::Streams* streams = device_.streams();
  if (stream_ != nullptr) streams->destroy_stream(stream_);
  if (window_ != nullptr) device_.close_host_window(window_, device_bytes_);
  if (registered_) static_cast<void>(streams->unregister_host(host_));
  for (void* memory : {static_cast<void*>(host_), static_cast<void*>(device_memory_)}) {
    if (memory != nullptr) static_cast<void>(device_.free(memory));
  }
}

Status BellWords::make(std::size_t lines, std::size_t units, const char*& why) noexcept {
  port::Streams* streams = device_.streams();
  why = "it has no streams: set BRANT_GPU=cuda on a machine with a GPU, or BRANT_GPU=emulated";
  if (streams == nullptr) return Status::not_supported;
  why = "no memory of the host";
  const std::size_t host_bytes = std::max(lines * kLineBytes, kSharedBytesMin);
  const Result<void*> host = device_.allocate(MemoryKind::host, host_bytes);
  if (!host) return host.status();
  host_ = static_cast<std::uint64_t*>(*host);
  std::memset(host_, 0, host_bytes);
  why = "it does not reach memory of the host that is locked for it (see `ulimit -l`, and the log)";
  if (const Status status = streams->register_host(host_, host_bytes); status != Status::ok) return status;
  registered_ = true;
  why = "no memory or stream of the device";
  const port::DeviceCapabilities& able = device_.capabilities();
  const MemoryKind kind = able.offers(MemoryKind::cuda) ? MemoryKind::cuda : MemoryKind::emulated;
  device_bytes_ = rounded(units * kUnitBytes, able.export_block_bytes);
  const Result<void*> memory = device_.allocate(kind, device_bytes_);
  if (!memory) return memory.status();
  device_memory_ = static_cast<std::byte*>(*memory);
  const Result<port::Stream*> stream = streams->create_stream(port::StreamPriority::high);
  if (!stream) return stream.status();
  stream_ = *stream;
  const Status filled = streams->fill(device_memory_, std::byte{0}, device_bytes_, stream_);
  return filled == Status::ok ? streams->synchronize(stream_) : filled;
}

Result<std::uint64_t*> BellWords::window(std::size_t number) noexcept {
  if (window_ == nullptr) {
    const Result<void*> opened = device_.open_host_window(device_memory_, device_bytes_);
    if (!opened) return opened.status();
    window_ = static_cast<std::byte*>(*opened);
  }
  return reinterpret_cast<std::uint64_t*>(window_ + number * kUnitBytes);
}

Status BellWords::clear_unit(std::size_t number) noexcept {
  port::Streams& streams = *device_.streams();
  const Status filled = streams.fill(unit(number), std::byte{0}, kUnitBytes, stream_);
  return filled == Status::ok ? streams.synchronize(stream_) : filled;
}

}  // namespace brant
