#pragma once

#include <memory>

#include "port/memory/host_memory.h"

namespace brant::port::memory {

/// The device of a machine without a GPU: memory of the kinds `host` and `pinned`, no streams and no kernels. Pointers
/// it did not allocate are not_found, which callers take for ordinary host memory. Any thread.
class HostDevice final : public Device {
 public:
  HostDevice();

  [[nodiscard]] const DeviceCapabilities& capabilities() const noexcept override { return capabilities_; }

  Result<void*> allocate(MemoryKind kind, std::size_t bytes) noexcept override { return memory_.allocate(kind, bytes); }
  Status free(void* pointer) noexcept override { return memory_.free(pointer); }
  Result<PointerInfo> query(const void* pointer) noexcept override { return memory_.query(pointer); }
  [[nodiscard]] const AllocationMap* host_allocations() const noexcept override { return &memory_.map(); }

  Result<ExportRecord> export_allocation(const void* pointer) noexcept override {
    return memory_.export_allocation(pointer);
  }
  Result<void*> import_allocation(const ExportRecord& record) noexcept override {
    return memory_.import_allocation(record);
  }
  Result<ExportedFile> export_file(const void*) noexcept override { return Status::not_supported; }
  Result<void*> import_file(const ExportRecord&, int) noexcept override { return Status::not_supported; }
  Status close_import(void* imported) noexcept override { return memory_.close_import(imported); }

  Streams* streams() noexcept override { return nullptr; }
  Kernels* kernels() noexcept override { return nullptr; }

 private:
  DeviceCapabilities capabilities_;  ///< Constant after construction.
  HostMemory memory_;
};

}  // namespace brant::port::memory
