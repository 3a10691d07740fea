#include "port/memory/cuda/cuda_imports.h"

#include <compare>
#include <cstring>
#include <new>

namespace brant::port::memory {
namespace {

constexpr std::uint64_t kMagic = 0x6272616e74637531;  // "brantcu1"

/// What an ExportRecord's handle holds.
struct Handle {
  std::uint64_t magic = 0;
  ProcessMark owner;
  std::uint64_t base = 0;  ///< In the exporter; for records that come back to their own process.
  CUipcMemHandle ipc = {};
};
static_assert(sizeof(Handle) <= sizeof(ExportRecord::handle));

Handle handle_of(const ExportRecord& record) noexcept {
  Handle handle;
  std::memcpy(&handle, record.handle, sizeof(handle));
  return handle;
}

}  // namespace

CudaImports::~CudaImports() {
  if (!context_.own_process()) return;
  const ContextScope scope(context_);
  for (const auto& [key, entry] : entries_) {
    if (!entry.own) context_.driver().ipc_close_mem_handle(entry.base);
  }
}

Result<ExportRecord> CudaImports::export_allocation(const PointerInfo& info, const void* pointer) noexcept {
  Handle handle{.magic = kMagic, .owner = {}, .base = address(info.base)};
  unsigned capable = 0;
  const Status status = beside_captures(context_, "cuIpcGetMemHandle", [&] {
    const CUresult asked = context_.driver().pointer_get_attribute(
        &capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address(pointer));
    if (asked != CUDA_SUCCESS || capable == 0) return asked;
    return context_.driver().ipc_get_mem_handle(&handle.ipc, handle.base);
  });
  if (status != Status::ok) return status;
  if (capable == 0) return Status::not_supported;
  const Result<ProcessMark> owner = own_process_mark();
  if (!owner) return owner.status();
  handle.owner = *owner;
  ExportRecord record;
  record.kind = MemoryKind::cuda;
  record.buffer_id = info.buffer_id;
  record.bytes = info.bytes;
  record.offset = address(pointer) - handle.base;
  std::memcpy(record.handle, &handle, sizeof(handle));
  return record;
}

Result<CUdeviceptr> CudaImports::open(const ExportRecord& record) noexcept {
  const Handle handle = handle_of(record);
  CUdeviceptr base = 0;
  CUresult opened = CUDA_SUCCESS;
  const Status status = beside_captures(context_, "cuIpcOpenMemHandle", [&] {
    opened = context_.driver().ipc_open_mem_handle(&base, handle.ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    return opened == CUDA_ERROR_ALREADY_MAPPED ? CUDA_SUCCESS : opened;
  });
  // Freed memory is in the way, until it is unmapped: that is nothing to tell users of.
  if (opened == CUDA_ERROR_ALREADY_MAPPED) return Status::in_progress;
  if (status == Status::ok) return base;
  const Status owner = check_process(handle.owner);  // it may have died meanwhile
  return owner == Status::ok ? status : owner;
}

Result<void*> CudaImports::import_allocation(const ExportRecord& record,
                                             std::uint64_t (*live_id)(const void*, const void*) noexcept,
                                             const void* live_context) noexcept {
  const Handle handle = handle_of(record);
  if (handle.magic != kMagic || record.offset >= record.bytes) return Status::invalid_argument;
  if (const Status owner = check_process(handle.owner); owner != Status::ok) return owner;
  const Result<ProcessMark> self = own_process_mark();
  const bool own = self.ok() && *self == handle.owner;
  if (own && live_id(live_context, reinterpret_cast<const void*>(handle.base)) != record.buffer_id)
    return Status::not_found;

  const Key key{.start_time = handle.owner.start_time, .pid = handle.owner.pid, .buffer_id = record.buffer_id};
  try {
    const std::lock_guard lock(mutex_);
    auto [place, fresh] = entries_.try_emplace(key);
    Entry& entry = place->second;
    if (fresh) {
      const Result<CUdeviceptr> base = own ? Result<CUdeviceptr>(handle.base) : open(record);
      if (!base) {
        entries_.erase(place);
        return base.status();
      }
      entry = Entry{.base = *base, .bytes = record.bytes, .count = 0, .own = own};
    }
    ++entry.count;
    return reinterpret_cast<void*>(entry.base + record.offset);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

Status CudaImports::close_import(void* imported) noexcept {
  const std::lock_guard lock(mutex_);
  for (auto place = entries_.begin(); place != entries_.end(); ++place) {
    Entry& entry = place->second;
    if (address(imported) - entry.base >= entry.bytes) continue;
    if (--entry.count > 0) return Status::ok;
    const Entry last = entry;
    entries_.erase(place);
    if (last.own) return Status::ok;
    context_.staying_kernels().expect_none("cuIpcCloseMemHandle");
    return beside_captures(context_, "cuIpcCloseMemHandle",
                           [&] { return context_.driver().ipc_close_mem_handle(last.base); });
  }
  return Status::not_found;
}

}  // namespace brant::port::memory
