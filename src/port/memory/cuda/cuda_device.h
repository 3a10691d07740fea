#pragma once

#include <optional>

#include "port/memory.h"
#include "port/memory/adapters.h"
#include "port/memory/allocation_map.h"
#include "port/memory/cuda/cuda_context.h"
#include "port/memory/cuda/cuda_files.h"
#include "port/memory/cuda/cuda_imports.h"
#include "port/memory/cuda/cuda_kernels.h"
#include "port/memory/cuda/cuda_streams.h"
#include "port/memory/cuda/pointer_cache.h"
#include "port/memory/host_memory.h"

namespace brant::port::memory {

/// One NVIDIA GPU through the driver API. Kinds cuda, cuda_managed (where the system can), pinned and host.
///
/// Works on the device's primary context, so that memory and streams of the CUDA runtime and of frameworks are taken as
/// they are. Freeing GPU memory waits for the whole GPU (a property of the driver): not while a kernel runs that waits
/// for the CPU.
class CudaDevice final : public Device {
 public:
  /// Throws Error.
  CudaDevice(const CudaDriver& driver, const CudaDeviceSummary& summary, const std::string& driver_version);
  /// Frees what is still allocated and closes imports. Silent when the driver was closed before (process exit).
  ~CudaDevice() override;

  [[nodiscard]] const DeviceCapabilities& capabilities() const noexcept override { return capabilities_; }

  Result<void*> allocate(MemoryKind kind, std::size_t bytes) noexcept override;
  Status free(void* pointer) noexcept override;
  /// Own memory is looked up here; for other memory the driver is asked for the buffer id (some ten nanoseconds), and
  /// for the rest only the first time. A buffer id of 0 means that the driver has none: do not cache by it.
  Result<PointerInfo> query(const void* pointer) noexcept override;
  [[nodiscard]] const AllocationMap* host_allocations() const noexcept override { return &host_memory_.map(); }

  Result<ExportRecord> export_allocation(const void* pointer) noexcept override;
  Result<void*> import_allocation(const ExportRecord& record) noexcept override;
  Result<ExportedFile> export_file(const void* pointer) noexcept override;
  Result<void*> import_file(const ExportRecord& record, int file) noexcept override {
    return files_.import_file(record, file);
  }
  Status close_import(void* imported) noexcept override;

  /// As a dma-buf that the driver lets the CPU map: drivers of CUDA 13.3 and later do.
  Result<void*> open_host_window(void* pointer, std::size_t bytes) noexcept override;
  void close_host_window(void* window, std::size_t bytes) noexcept override;

  Streams* streams() noexcept override { return &streams_; }
  Kernels* kernels() noexcept override { return &kernels_; }

 private:
  Result<void*> allocate_shared_pinned(std::size_t bytes) noexcept;
  Status free_host(void* pointer) noexcept;
  CUresult acquire(MemoryKind kind, std::size_t bytes, void*& pointer) noexcept;
  CUresult give_back(const PointerInfo& allocation) noexcept;
  /// 0: it has none that can be told. Nothing: the driver does not know the memory.
  [[nodiscard]] std::optional<std::uint64_t> buffer_id_at(const void* pointer) const noexcept;
  Result<PointerInfo> ask_driver(const void* pointer) noexcept;
  void narrow(PointerInfo& info, const void* pointer) const noexcept;

  CudaContext context_;              ///< First made and last released.
  DeviceCapabilities capabilities_;  ///< Constant after construction.
  HostMemory host_memory_;           ///< Kind host, and pinned memory that others can map.
  AllocationMap allocations_;        ///< Kinds cuda and cuda_managed, and the other pinned memory.
  PointerCache foreign_;
  CudaImports imports_;
  CudaFiles files_;
  CudaStreams streams_;
  CudaKernels kernels_;
};

}  // namespace brant::port::memory
