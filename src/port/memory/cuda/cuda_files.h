#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <string_view>

#include "port/memory.h"
#include "port/memory/cuda/cuda_context.h"

namespace brant::port::memory {

/// GPU memory as open files: what legacy handles (CudaImports) cannot name. Memory of cuMemCreate is a file by itself;
/// memory of a pool is the pool's file and a record of the allocation in it. Any thread.
class CudaFiles {
 public:
  /// `device`: the GPU that imported memory is made reachable for. `usable`: driver and GPU can.
  CudaFiles(const CudaContext& context, bool usable) noexcept : context_(context), usable_(usable) {}
  CudaFiles(const CudaFiles&) = delete;
  CudaFiles& operator=(const CudaFiles&) = delete;
  ~CudaFiles();

  /// See Device::export_file; `info` is of the allocation, of kind cuda, that `pointer` lies in.
  Result<ExportedFile> export_file(const PointerInfo& info, const void* pointer) noexcept;
  Result<void*> import_file(const ExportRecord& record, int file) noexcept;
  Status close_import(void* imported) noexcept;
  /// No other process can map an allocation: `why`, and the cure. Loud once, since a program that allocates so does it
  /// many times.
  void say_unshareable(const PointerInfo& info, std::string_view why) noexcept;

 private:
  struct Handle;
  struct Import {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    CUmemoryPool pool = nullptr;  ///< Null: memory of cuMemCreate.
    unsigned count = 1;           ///< The same place of a pool is imported at the same address each time.
  };

  Result<ExportedFile> export_created(const PointerInfo& info, const void* pointer) noexcept;
  Result<ExportedFile> export_pooled(const PointerInfo& info, CUmemoryPool pool, const void* pointer) noexcept;
  CUresult import_created(int file, Import& import) noexcept;
  CUresult import_pooled(int file, const Handle& handle, Import& import) noexcept;
  void share(Import& known, const Import& again) noexcept;
  CUresult undo(const Import& import) noexcept;
  [[nodiscard]] CUmemAccessDesc access() const noexcept;

  const CudaContext& context_;
  const bool usable_;
  std::atomic<bool> said_unshareable_ = false;
  std::mutex mutex_;
  std::map<CUdeviceptr, Import> imports_;  ///< By base. Protected by mutex_.
};

}  // namespace brant::port::memory
