#pragma once

#include <memory>
#include <utility>

#include "port/memory.h"

namespace brant::test {

/// A device behind which another one does all: those that behave otherwise in some calls derive from it. The CPU
/// reaches none of its memory through a window.
class WrappedDevice : public port::Device {
 public:
  explicit WrappedDevice(std::unique_ptr<port::Device> inner) noexcept : inner_(std::move(inner)) {}

  [[nodiscard]] const port::DeviceCapabilities& capabilities() const noexcept override {
    return inner_->capabilities();
  }
  Result<void*> allocate(MemoryKind kind, std::size_t bytes) noexcept override { return inner_->allocate(kind, bytes); }
  Status free(void* pointer) noexcept override { return inner_->free(pointer); }
  Result<port::PointerInfo> query(const void* pointer) noexcept override { return inner_->query(pointer); }
  const port::memory::AllocationMap* host_allocations() const noexcept override { return inner_->host_allocations(); }
  Result<port::ExportRecord> export_allocation(const void* pointer) noexcept override {
    return inner_->export_allocation(pointer);
  }
  Result<void*> import_allocation(const port::ExportRecord& record) noexcept override {
    return inner_->import_allocation(record);
  }
  Result<port::ExportedFile> export_file(const void* pointer) noexcept override { return inner_->export_file(pointer); }
  Result<void*> import_file(const port::ExportRecord& record, int file) noexcept override {
    return inner_->import_file(record, file);
  }
  Status close_import(void* imported) noexcept override { return inner_->close_import(imported); }
  port::Streams* streams() noexcept override { return inner_->streams(); }
  port::Kernels* kernels() noexcept override { return inner_->kernels(); }

 protected:
  [[nodiscard]] port::Device& inner() noexcept { return *inner_; }

 private:
  std::unique_ptr<port::Device> inner_;
};

}  // namespace brant::test
