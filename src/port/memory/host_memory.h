#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "port/memory.h"
#include "port/memory/allocation_map.h"
#include "port/memory/host_shares.h"

namespace brant::port::memory {

/// The kinds every device offers, as bits of DeviceCapabilities::kinds.
inline constexpr std::uint32_t kHostKinds =
    (1u << static_cast<unsigned>(MemoryKind::host)) | (1u << static_cast<unsigned>(MemoryKind::pinned));

/// Allocates the kinds `host` and `pinned` from the operating system, for the devices that have no driver to do it.
///
/// "pinned" is page-aligned memory of its own pages, as a GPU driver would give. It is not page-locked: without a GPU
/// nothing reads it behind the CPU's back, and locking would only fail at the user's limit (ulimit -l).
/// Allocations of at least kSharedBytes can be exported to other processes of this host, as long as there is room for
/// them in HostShares.
/// Any thread. Memory still allocated is freed with the object.
class HostMemory {
 public:
  /// Smaller messages are copied through rings anyway, and a page table entry is the least that sharing costs.
  static constexpr std::size_t kSharedBytes = std::size_t{16} << 10;

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
  /// See Device::export_allocation; imports as in HostShares.
  Result<ExportRecord> export_allocation(const void* pointer) noexcept;
  Result<void*> import_allocation(const ExportRecord& record) noexcept { return shares_.import_allocation(record); }
  Status close_import(void* imported) noexcept { return shares_.close_import(imported); }
  /// What is allocated now.
  [[nodiscard]] std::vector<PointerInfo> allocations() const noexcept { return allocations_.all(); }
  [[nodiscard]] const AllocationMap& map() const noexcept { return allocations_; }

 private:
  void* acquire(MemoryKind kind, std::size_t bytes) noexcept;
  void give_back(const PointerInfo& allocation) noexcept;

  HostShares shares_;
  AllocationMap allocations_;
};

}  // namespace brant::port::memory
