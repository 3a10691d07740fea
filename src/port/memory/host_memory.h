#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "port/memory.h"
#include "port/memory/allocation_map.h"

namespace brant::port::memory {

/// The kinds every device offers, as bits of DeviceCapabilities::kinds.
inline constexpr std::uint32_t kHostKinds =
    (1u << static_cast<unsigned>(MemoryKind::host)) | (1u << static_cast<unsigned>(MemoryKind::pinned));

/// Allocates the kinds `host` and `pinned` from the operating system, for the devices that have no driver to do it.
///
/// "pinned" is page-aligned memory of its own pages, as a GPU driver would give. It is not page-locked: without a GPU
/// nothing reads it behind the CPU's back, and locking would only fail at the user's limit (ulimit -l).
/// Any thread. Memory still allocated is freed with the object.
class HostMemory {
 public:
  HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory();

  /// At least 256-byte aligned, contents undefined. invalid_argument for 0 bytes, not_supported for other kinds,
  /// no_memory.
  Result<void*> allocate(MemoryKind kind, std::size_t bytes) noexcept;
  /// not_found for what is not allocated (any more), invalid_argument for a pointer into the middle.
  Status free(void* pointer) noexcept;
  [[nodiscard]] Result<PointerInfo> query(const void* pointer) const noexcept { return allocations_.find(pointer); }
  /// What is allocated now.
  [[nodiscard]] std::vector<PointerInfo> allocations() const noexcept { return allocations_.all(); }

 private:
  AllocationMap allocations_;
};

}  // namespace brant::port::memory
