#include "port/memory/cuda/cuda_files.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "base/log.h"

namespace brant::port::memory {

namespace {

constexpr std::uint64_t kFileMagic = 0x6272616e74637566;  // "brantcuf"
constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

ExportRecord record_of(const PointerInfo& info, const void* pointer) noexcept {
  ExportRecord record;
  record.kind = MemoryKind::cuda;
  record.means = ExportRecord::Means::file;
  record.buffer_id = info.buffer_id;
  record.bytes = info.bytes;
  record.offset = address(pointer) - address(info.base);
  return record;
}

/// It may be otherwise the next time, as when no descriptor is left.
bool is_passing(CUresult result) noexcept {
  return result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_OPERATING_SYSTEM;
}

/// The driver leaves files of pools open for programs that are started.
int closed_on_exec(int file) noexcept {
  ::fcntl(file, F_SETFD, FD_CLOEXEC);
  return file;
}

}  // namespace

/// What an ExportRecord's handle holds.
struct CudaFiles::Handle {
  std::uint64_t magic = 0;
  std::uint64_t pooled = 0;  ///< The file is a pool's, and `place` says where in it.
  CUmemPoolPtrExportData place = {};
};

CudaFiles::~CudaFiles() {
  if (!context_.own_process()) return;
  const ContextScope scope(context_);
  for (const auto& [base, import] : imports_) undo(import);
}

CUmemAccessDesc CudaFiles::access() const noexcept {
  CUmemAccessDesc description = {};
  description.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  description.location.id = context_.device();
  description.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return description;
}

Result<ExportedFile> CudaFiles::export_file(const PointerInfo& info, const void* pointer) noexcept {
  if (!usable_) return Status::not_supported;
  unsigned legacy = 0;
  CUmemoryPool pool = nullptr;
  const Status asked = in_context(context_, "cuPointerGetAttribute", [&] {
    const auto ask = context_.driver().pointer_get_attribute;
    const CUresult result = ask(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address(pointer));
    if (result != CUDA_SUCCESS || legacy != 0) return result;
    return ask(static_cast<void*>(&pool), CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address(pointer));
  });
  if (asked != Status::ok) return asked;
  if (legacy != 0) {
    log::debug("{} bytes of GPU memory at {} are no file: export_allocation shares them", info.bytes, info.base);
    return Status::not_supported;
  }
  return pool != nullptr ? export_pooled(info, pool, pointer) : export_created(info, pointer);
}

Result<ExportedFile> CudaFiles::export_created(const PointerInfo& info, const void* pointer) noexcept {
  const CudaDriver& driver = context_.driver();
  const ContextScope scope(context_);
  CUmemGenericAllocationHandle memory = 0;
  CUresult result = driver.mem_retain_allocation_handle(&memory, info.base);
  if (result != CUDA_SUCCESS) return context_.status(result, "cuMemRetainAllocationHandle");
  int file = -1;
  result = driver.mem_export_to_shareable_handle(&file, memory, kFile, 0);
  driver.mem_release(memory);
  if (result == CUDA_SUCCESS) {
    ExportRecord record = record_of(info, pointer);
    const Handle handle{.magic = kFileMagic, .pooled = 0, .place = {}};
    std::memcpy(record.handle, &handle, sizeof(handle));
    return ExportedFile{UniqueFd(closed_on_exec(file)), record};
  }
  if (is_passing(result)) return context_.status(result, "cuMemExportToShareableHandle");
  say_unshareable(info,
                  "cuMemCreate made them without a shareable handle type: ask for "
                  "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR (requestedHandleTypes), or allocate with cudaMalloc");
  return Status::not_supported;
}

Result<ExportedFile> CudaFiles::export_pooled(const PointerInfo& info, CUmemoryPool pool,
                                              const void* pointer) noexcept {
  const CudaDriver& driver = context_.driver();
  const ContextScope scope(context_);
  int file = -1;
  const CUresult shared = driver.mem_pool_export_to_shareable_handle(&file, pool, kFile, 0);
  if (shared != CUDA_SUCCESS) {
    if (is_passing(shared)) return context_.status(shared, "cuMemPoolExportToShareableHandle");
    say_unshareable(info,
                    "their pool was made without a shareable handle type, as a GPU's default pool always is: make "
                    "one with cudaMemHandleTypePosixFileDescriptor (cudaMemPoolCreate) and allocate with "
                    "cudaMallocFromPoolAsync, or allocate with cudaMalloc");
    return Status::not_supported;
  }
  UniqueFd owned(closed_on_exec(file));
  Handle handle{.magic = kFileMagic, .pooled = 1, .place = {}};
  const CUresult told = driver.mem_pool_export_pointer(&handle.place, address(info.base));
  if (told != CUDA_SUCCESS) return context_.status(told, "cuMemPoolExportPointer");
  ExportRecord record = record_of(info, pointer);
  static_assert(sizeof(Handle) <= sizeof(record.handle));
  std::memcpy(record.handle, &handle, sizeof(handle));
  return ExportedFile{std::move(owned), record};
}

void CudaFiles::say_unshareable(const PointerInfo& info, std::string_view why) noexcept {
  const bool first = !said_unshareable_.exchange(true, std::memory_order_relaxed);
  log::line(first ? log::Level::warn : log::Level::debug,
            "{} bytes of GPU memory at {} cannot be shared with other processes, and what lies there goes other ways, "
            "over the network as a rule: {}{}",
            info.bytes, info.base, why, first ? ". Said once; BRANT_LOG=debug names all such memory" : "");
}

Result<void*> CudaFiles::import_file(const ExportRecord& record, int file) noexcept {
  Handle handle;
  std::memcpy(&handle, record.handle, sizeof(handle));
  if (handle.magic != kFileMagic || record.offset >= record.bytes || file < 0) return Status::invalid_argument;
  if (!usable_) return Status::not_supported;
  Import import{.base = 0, .bytes = record.bytes, .pool = nullptr, .count = 1};
  const Status status = beside_captures(context_, handle.pooled != 0 ? "cuMemPoolImportPointer" : "cuMemMap", [&] {
    return handle.pooled != 0 ? import_pooled(file, handle, import) : import_created(file, import);
  });
  // So the driver says that the file is none of its memory.
  if (status == Status::device_failed) return Status::invalid_argument;
  if (status != Status::ok) return status;
  try {
    const std::lock_guard lock(mutex_);
    const auto [known, fresh] = imports_.try_emplace(import.base, import);
    if (!fresh) share(known->second, import);
    return reinterpret_cast<void*>(import.base + record.offset);
  } catch (const std::bad_alloc&) {
    const ContextScope scope(context_);
    undo(import);
    return Status::no_memory;
  }
}

/// What its owner has freed in a pool, and allocated anew, is found where the old import is: that goes once, with the
/// last of the two.
void CudaFiles::share(Import& known, const Import& again) noexcept {
  ++known.count;
  known.bytes = std::max(known.bytes, again.bytes);
  const ContextScope scope(context_);
  context_.driver().mem_pool_destroy(again.pool);
}

CUresult CudaFiles::import_created(int file, Import& import) noexcept {
  const CudaDriver& driver = context_.driver();
  CUmemGenericAllocationHandle memory = 0;
  auto* const described = reinterpret_cast<void*>(static_cast<std::uintptr_t>(file));
  CUresult result = driver.mem_import_from_shareable_handle(&memory, described, kFile);
  if (result != CUDA_SUCCESS) return result;
  result = driver.mem_address_reserve(&import.base, import.bytes, 0, 0, 0);
  if (result == CUDA_SUCCESS) {
    result = driver.mem_map(import.base, import.bytes, 0, memory, 0);
    if (result == CUDA_SUCCESS) {
      const CUmemAccessDesc description = access();
      result = driver.mem_set_access(import.base, import.bytes, &description, 1);
      if (result != CUDA_SUCCESS) driver.mem_unmap(import.base, import.bytes);
    }
    if (result != CUDA_SUCCESS) driver.mem_address_free(import.base, import.bytes);
  }
  driver.mem_release(memory);  // the mapping keeps it
  return result;
}

CUresult CudaFiles::import_pooled(int file, const Handle& handle, Import& import) noexcept {
  const CudaDriver& driver = context_.driver();
  auto* const described = reinterpret_cast<void*>(static_cast<std::uintptr_t>(file));
  CUresult result = driver.mem_pool_import_from_shareable_handle(&import.pool, described, kFile, 0);
  if (result != CUDA_SUCCESS) return result;
  const CUmemAccessDesc description = access();
  result = driver.mem_pool_set_access(import.pool, &description, 1);
  CUmemPoolPtrExportData place = handle.place;
  if (result == CUDA_SUCCESS) result = driver.mem_pool_import_pointer(&import.base, import.pool, &place);
  if (result != CUDA_SUCCESS) driver.mem_pool_destroy(import.pool);
  return result;
}

CUresult CudaFiles::undo(const Import& import) noexcept {
  const CudaDriver& driver = context_.driver();
  if (import.pool != nullptr) {
    const CUresult freed = driver.mem_free(import.base);
    const CUresult destroyed = driver.mem_pool_destroy(import.pool);
    return freed != CUDA_SUCCESS ? freed : destroyed;
  }
  const CUresult unmapped = driver.mem_unmap(import.base, import.bytes);
  const CUresult freed = driver.mem_address_free(import.base, import.bytes);
  return unmapped != CUDA_SUCCESS ? unmapped : freed;
}

Status CudaFiles::close_import(void* imported) noexcept {
  Import last;
  {
    const std::lock_guard lock(mutex_);
    auto after = imports_.upper_bound(address(imported));
    if (after == imports_.begin()) return Status::not_found;
    const auto found = std::prev(after);
    if (address(imported) - found->first >= found->second.bytes) return Status::not_found;
    if (--found->second.count > 0) return Status::ok;
    last = found->second;
    imports_.erase(found);
  }
  context_.staying_kernels().expect_none("cuMemUnmap");
  return beside_captures(context_, "cuMemUnmap", [&] { return undo(last); });
}

}  // namespace brant::port::memory
