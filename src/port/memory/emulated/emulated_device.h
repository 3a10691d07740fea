#pragma once

#include <atomic>
#include <cstddef>

#include "port/memory.h"
#include "port/memory/emulated/emulated_kernels.h"
#include "port/memory/emulated/emulated_memory.h"
#include "port/memory/emulated/emulated_streams.h"
#include "port/memory/emulated_options.h"
#include "port/memory/host_memory.h"

namespace brant::port::memory {

/// A device made of threads, for tests and for machines without a GPU. Its memory (kind `emulated`) may not be
/// dereferenced by the CPU: that traps, as on a GPU without managed memory. Streams copy between any kinds, kernels run
/// their host versions, allocations are exported to other processes of the host.
///
/// Stricter than a GPU where programs go wrong silently: fresh memory holds a pattern, freed or overrun memory is
/// refused, and the device reaches host memory only if it is pinned or registered (copies take any). Memory freed while
/// a copy uses it stays until the copy is done. Several devices in one process share one address space; each rank of an
/// in-process test may have its own.
///
/// Thread rule as in port/memory.h. Do not use a device in a child after fork: its threads are not there.
class EmulatedDevice final : public Device {
 public:
  explicit EmulatedDevice(const EmulatedOptions& options = {});
  /// Discards queued work, waits for running work (bounded), frees everything allocated and closes imports.
  ~EmulatedDevice() override;

  [[nodiscard]] const DeviceCapabilities& capabilities() const noexcept override { return capabilities_; }

  Result<void*> allocate(MemoryKind kind, std::size_t bytes) noexcept override;
  Status free(void* pointer) noexcept override;
  Result<PointerInfo> query(const void* pointer) noexcept override;
  [[nodiscard]] const AllocationMap* host_allocations() const noexcept override { return &host_memory_.map(); }

  Result<ExportRecord> export_allocation(const void* pointer) noexcept override;
  Result<void*> import_allocation(const ExportRecord& record) noexcept override;
  Result<ExportedFile> export_file(const void* pointer) noexcept override { return memory_.export_file(pointer); }
  Result<void*> import_file(const ExportRecord& record, int file) noexcept override {
    return memory_.import_file(owner(), record, file);
  }
  Status close_import(void* imported) noexcept override;

  Result<void*> open_host_window(void* pointer, std::size_t bytes) noexcept override;

  Streams* streams() noexcept override { return &streams_; }
  Kernels* kernels() noexcept override { return &kernels_; }

  /// Bytes of kind `emulated` allocated now.
  [[nodiscard]] std::size_t bytes_in_use() const noexcept { return bytes_in_use_.load(std::memory_order_relaxed); }

 private:
  Result<void*> allocate_pinned(std::size_t bytes) noexcept;
  Result<void*> allocate_emulated(std::size_t bytes) noexcept;
  [[nodiscard]] EmulatedMemory::Owner owner() const noexcept { return {this, capabilities_.ordinal}; }

  DeviceCapabilities capabilities_;  ///< Constant after construction.
  EmulatedMemory& memory_ = EmulatedMemory::of_process();
  HostMemory host_memory_;
  std::atomic<std::size_t> bytes_in_use_{0};
  EmulatedStreams streams_;
  EmulatedKernels kernels_;
};

}  // namespace brant::port::memory
