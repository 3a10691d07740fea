#pragma once

#include <cstddef>
#include <cstdint>

#include "brant/base/buffer.h"
#include "brant/base/status.h"
#include "port/memory.h"
#include "port/memory/allocation_map.h"

namespace brant {

/// What was found out about a buffer, for all who handle it on behalf of one operation: a question to the driver costs
/// some hundred nanoseconds.
struct AskedMemory {
  bool asked = false;
  std::uint64_t buffer_id = 0;  ///< Of its allocation (see port::PointerInfo), where the device was asked.
};

/// What kind of memory a buffer is, and whether it is memory at all.
class MemoryKinds {
 public:
  explicit MemoryKinds(port::Device& device) noexcept : device_(device), host_allocations_(device.host_allocations()) {}
  MemoryKinds(const MemoryKinds&) = delete;
  MemoryKinds& operator=(const MemoryKinds&) = delete;

  /// Kind of the memory behind a pointer that was not declared, and a check of what was declared: device memory is
  /// looked up (see `Device::query`), and no range is null, wraps, or reaches past the end of what this process's
  /// device allocated, host memory included. Of other host memory nobody knows the end.
  Status resolve(const void* data, std::size_t bytes, MemoryKind& kind) noexcept {
    AskedMemory answer;
    return resolve(data, bytes, kind, answer);
  }
  /// The same, once: `answer` keeps what was found, and is taken for it afterwards.
  Status resolve(const void* data, std::size_t bytes, MemoryKind& kind, AskedMemory& answer) noexcept {
    if (answer.asked) return Status::ok;
    answer.asked = true;
    const bool checked = kind == MemoryKind::host && host_allocations_ != nullptr &&
                         host_range_.version == host_allocations_->version() && host_range_.covers(data, bytes);
    return checked && bytes != 0 ? Status::ok : find(data, bytes, kind, answer.buffer_id);
  }

 private:
  Status find(const void* data, std::size_t bytes, MemoryKind& kind, std::uint64_t& buffer_id) noexcept;
  Status check_host(const void* data, std::size_t bytes) noexcept;
  [[nodiscard]] bool goes_on(const void* data, std::size_t bytes, port::PointerInfo piece) noexcept;

  port::Device& device_;
  const port::memory::AllocationMap* const host_allocations_;  ///< See Device::host_allocations.
  port::memory::AllocationMap::Range host_range_;              ///< Around the host memory that was looked up last.
};

}  // namespace brant
