#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "base/process_mark.h"
#include "port/memory.h"
#include "port/memory/cuda/cuda_context.h"

namespace brant::port::memory {

/// GPU memory of other processes of this host, by the driver's legacy handles (cuIpc). Each allocation is opened once
/// and counted, since the driver allows one owner of a mapping. An import keeps the exporter's memory allocated until
/// it is closed.
class CudaImports {
 public:
  explicit CudaImports(const CudaContext& context) noexcept : context_(context) {}
  CudaImports(const CudaImports&) = delete;
  CudaImports& operator=(const CudaImports&) = delete;
  ~CudaImports();

  /// Describes the allocation `info`, of kind cuda, for other processes; `pointer` lies in it. not_supported for memory
  /// that legacy handles cannot name (pools, cuMemCreate): see CudaFiles.
  Result<ExportRecord> export_allocation(const PointerInfo& info, const void* pointer) noexcept;

  /// The record must be current: the driver opens handles of memory that the exporter has freed, and nobody here can
  /// tell. peer_lost: the exporter is gone. not_supported: another pid namespace. A record of this very process gives
  /// its own pointer, if `live_id`, the buffer id now at that address, says that it is the same allocation; else
  /// not_found.
  Result<void*> import_allocation(const ExportRecord& record,
                                  std::uint64_t (*live_id)(const void* context, const void* pointer) noexcept,
                                  const void* live_context) noexcept;
  Status close_import(void* imported) noexcept;

 private:
  struct Key {
    std::uint64_t start_time = 0;
    std::int32_t pid = 0;
    std::uint64_t buffer_id = 0;
    auto operator<=>(const Key&) const noexcept = default;
  };
  struct Entry {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    unsigned count = 0;
    bool own = false;  ///< Memory of this process: not opened, nothing to close.
  };
  Result<CUdeviceptr> open(const ExportRecord& record) noexcept;

  const CudaContext& context_;
  std::mutex mutex_;
  std::map<Key, Entry> entries_;  ///< Protected by mutex_.
};

}  // namespace brant::port::memory
