#include "port/memory/cuda/cuda_device.h"

#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/log.h"

namespace brant::port::memory {
namespace {

int attribute(const CudaContext& context, CUdevice_attribute which) noexcept {
  int value = 0;
  return context.driver().device_get_attribute(&value, which, context.device()) == CUDA_SUCCESS ? value : 0;
}

DeviceCapabilities describe(const CudaContext& context, const CudaDeviceSummary& summary, const std::string& driver) {
  DeviceCapabilities capabilities;
  capabilities.name = summary.name;
  capabilities.id = summary.uuid;
  capabilities.driver = driver;
  capabilities.ordinal = summary.ordinal;
  capabilities.architecture = 10 * summary.compute_major + summary.compute_minor;
  capabilities.processors = static_cast<unsigned>(attribute(context, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  capabilities.memory_bytes = summary.memory_bytes;
  capabilities.kinds = kHostKinds | (1u << static_cast<unsigned>(MemoryKind::cuda));
  if (attribute(context, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) != 0) {
    capabilities.kinds |= 1u << static_cast<unsigned>(MemoryKind::cuda_managed);
  }
  capabilities.streams = true;
  capabilities.kernels = true;
  capabilities.exports = !summary.mig;
  capabilities.export_block_bytes = std::size_t{2} << 20;
  capabilities.file_exports =
      !summary.mig && attribute(context, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
  capabilities.stream_words = attribute(context, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) != 0;
  capabilities.cooperative = attribute(context, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0;
  CUmoduleLoadingMode loading = CU_MODULE_EAGER_LOADING;
  const auto ask = context.driver().module_get_loading_mode;
  capabilities.loads_lazily = ask != nullptr && ask(&loading) == CUDA_SUCCESS && loading == CU_MODULE_LAZY_LOADING;
  capabilities.processes_take_turns = attribute(context, CU_DEVICE_ATTRIBUTE_MPS_ENABLED) == 0;
  return capabilities;
}

}  // namespace

CudaDevice::CudaDevice(const CudaDriver& driver, const CudaDeviceSummary& summary, const std::string& driver_version)
    : context_(driver, summary.ordinal, staying_kernels()),
      capabilities_(describe(context_, summary, driver_version)),
      imports_(context_),
      files_(context_, capabilities_.file_exports),
      streams_(context_, capabilities_.stream_words),
      kernels_(context_, capabilities_.cooperative) {
  // One address for host and device is what the interface promises. False only on systems brant does not know (not
  // x86-64, not Arm servers).
  if (attribute(context_, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) == 0 ||
      attribute(context_, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM) == 0) {
    throw Error(Status::not_supported,
                fmt::format("GPU {} ({}) does not see host memory at the CPU's addresses; brant needs unified "
                            "addressing. Run with BRANT_GPU=none to use the host only",
                            summary.ordinal, summary.name));
  }
}

CudaDevice::~CudaDevice() {
  if (!context_.own_process()) return;
  const ContextScope scope(context_);
  for (const PointerInfo& allocation : allocations_.take_all()) give_back(allocation);
}

CUresult CudaDevice::acquire(MemoryKind kind, std::size_t bytes, void*& pointer) noexcept {
  const CudaDriver& driver = context_.driver();
  if (kind == MemoryKind::pinned) {
    return driver.mem_host_alloc(&pointer, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  }
  CUdeviceptr device_pointer = 0;
  const CUresult result = kind == MemoryKind::cuda
                              ? driver.mem_alloc(&device_pointer, bytes)
                              : driver.mem_alloc_managed(&device_pointer, bytes, CU_MEM_ATTACH_GLOBAL);
  pointer = reinterpret_cast<void*>(device_pointer);
  return result;
}

CUresult CudaDevice::give_back(const PointerInfo& allocation) noexcept {
  const CudaDriver& driver = context_.driver();
  return allocation.kind == MemoryKind::pinned ? driver.mem_free_host(allocation.base)
                                               : driver.mem_free(address(allocation.base));
}

/// Other processes cannot map what cuMemHostAlloc gives: so this is a file that both map, and that the driver locks.
Result<void*> CudaDevice::allocate_shared_pinned(std::size_t bytes) noexcept {
  const Result<void*> pointer = host_memory_.allocate(MemoryKind::pinned, bytes);
  if (!pointer) return pointer;
  const Status locked = streams_.register_host(*pointer, bytes);
  if (locked == Status::ok) return pointer;
  static_cast<void>(host_memory_.free(*pointer));
  return locked;
}

Result<void*> CudaDevice::allocate(MemoryKind kind, std::size_t bytes) noexcept {
  if (!capabilities_.offers(kind)) return Status::not_supported;
  if (kind == MemoryKind::host) return host_memory_.allocate(kind, bytes);
  if (bytes == 0) return Status::invalid_argument;
  if (kind == MemoryKind::pinned && bytes >= HostMemory::kSharedBytes) {
    if (const Result<void*> shared = allocate_shared_pinned(bytes); shared) return shared;
  }
  // Managed memory beyond the GPU's own can be had, and then thrashes or hangs the machine: refused.
  if (kind != MemoryKind::pinned && bytes > capabilities_.memory_bytes) return Status::no_memory;
  void* pointer = nullptr;
  const Status status = beside_captures(context_, kind == MemoryKind::pinned ? "cuMemHostAlloc" : "cuMemAlloc",
                                        [&] { return acquire(kind, bytes, pointer); });
  if (status != Status::ok) return status;
  const std::uint64_t id = buffer_id_at(pointer).value_or(0);
  const PointerInfo allocation{.kind = kind,
                               .device = kind == MemoryKind::pinned ? -1 : capabilities_.ordinal,
                               .base = pointer,
                               .bytes = bytes,
                               .buffer_id = id != 0 ? id : next_buffer_id()};
  const Status known = allocations_.insert(allocation);
  if (known == Status::ok) return pointer;
  const ContextScope scope(context_);
  give_back(allocation);
  return known;
}

Status CudaDevice::free_host(void* pointer) noexcept {
  const Result<PointerInfo> allocation = host_memory_.query(pointer);
  const bool locked = allocation.ok() && allocation->kind == MemoryKind::pinned && allocation->base == pointer;
  // Not locked any more, or the device has failed: the memory goes in either case.
  if (locked) static_cast<void>(streams_.unregister_host(pointer));
  return host_memory_.free(pointer);
}

Status CudaDevice::free(void* pointer) noexcept {
  const Result<PointerInfo> allocation = allocations_.remove(pointer);
  if (allocation.status() == Status::not_found) return free_host(pointer);
  if (!allocation) return allocation.status();
  context_.staying_kernels().expect_none("cuMemFree");
  return beside_captures(context_, "cuMemFree", [&] { return give_back(*allocation); });
}

/// Asks for two attributes: of ordinary host memory that takes 0.17 us, and to be told that a single one is an error
/// takes 1 us (docs/gotchas/cuda.md).
std::optional<std::uint64_t> CudaDevice::buffer_id_at(const void* pointer) const noexcept {
  unsigned type = 0;
  unsigned long long id = 0;
  std::array<CUpointer_attribute, 2> attributes = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_BUFFER_ID};
  std::array<void*, 2> values = {&type, &id};
  const CUresult result = context_.driver().pointer_get_attributes(static_cast<unsigned>(attributes.size()),
                                                                   attributes.data(), values.data(), address(pointer));
  if (result == CUDA_SUCCESS && type == 0) return std::nullopt;
  return result == CUDA_SUCCESS ? id : 0;
}

Result<PointerInfo> CudaDevice::query(const void* pointer) noexcept {
  if (pointer == nullptr) return Status::not_found;
  if (const auto own = allocations_.find(pointer); own) return own;
  if (const auto host = host_memory_.query(pointer); host) return host;
  if (const auto registered = streams_.query_registered(pointer); registered) return registered;
  const ContextScope scope(context_);
  if (scope.result() != CUDA_SUCCESS) return context_.status(scope.result(), "cuCtxGetCurrent");
  const std::optional<std::uint64_t> id = buffer_id_at(pointer);
  if (!id) return Status::not_found;
  if (const auto known = foreign_.find(*id, pointer); known) return known;
  return ask_driver(pointer);
}

Result<PointerInfo> CudaDevice::ask_driver(const void* pointer) noexcept {
  unsigned type = 0;
  unsigned managed = 0;
  int ordinal = -1;
  unsigned long long id = 0;
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
  unsigned legacy = 0;
  std::array<CUpointer_attribute, 7> attributes = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                   CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                                   CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                                   CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
  std::array<void*, 7> values = {&type, &managed, &ordinal, &id, &start, &bytes, &legacy};
  const CUresult result = context_.driver().pointer_get_attributes(static_cast<unsigned>(attributes.size()),
                                                                   attributes.data(), values.data(), address(pointer));
  if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_CONTEXT) return Status::not_found;
  if (result != CUDA_SUCCESS) return context_.status(result, "cuPointerGetAttributes");
  if (type == 0) return Status::not_found;
  PointerInfo info;
  info.kind = managed != 0                 ? MemoryKind::cuda_managed
              : type == CU_MEMORYTYPE_HOST ? MemoryKind::pinned
                                           : MemoryKind::cuda;
  info.device = info.kind == MemoryKind::pinned ? -1 : ordinal;
  info.base = reinterpret_cast<void*>(start);
  info.bytes = bytes;
  info.buffer_id = id;
  if (info.kind == MemoryKind::cuda && legacy == 0) narrow(info, pointer);
  foreign_.insert(info);
  return info;
}

/// The attributes tell of all the addresses that were reserved together; an allocation is what is mapped at one of
/// them.
void CudaDevice::narrow(PointerInfo& info, const void* pointer) const noexcept {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  const CUresult result = context_.driver().mem_get_address_range(&base, &bytes, address(pointer));
  if (result != CUDA_SUCCESS || (base == address(info.base) && bytes == info.bytes)) return;
  info.reserved_bytes = address(info.base) + info.bytes - base;
  info.base = reinterpret_cast<void*>(base);
  info.bytes = bytes;
}

Result<ExportRecord> CudaDevice::export_allocation(const void* pointer) noexcept {
  const Result<PointerInfo> info = query(pointer);
  if (!info) return info.status();
  const Result<ExportRecord> host = host_memory_.export_allocation(pointer);
  if (host.status() != Status::not_found) return host;
  if (info->kind != MemoryKind::cuda) return Status::wrong_kind;
  if (!capabilities_.exports) return Status::not_supported;
  const Result<ExportRecord> record = imports_.export_allocation(*info, pointer);
  if (record.status() == Status::not_supported && !capabilities_.file_exports) {
    files_.say_unshareable(*info,
                           "legacy handles (CUDA IPC) do not name what pools and cuMemCreate made, and this GPU "
                           "or its driver shares no files: allocate with cudaMalloc or Runtime::allocate");
  }
  return record;
}

Result<ExportedFile> CudaDevice::export_file(const void* pointer) noexcept {
  const Result<PointerInfo> info = query(pointer);
  if (!info) return info.status();
  return info->kind == MemoryKind::cuda ? files_.export_file(*info, pointer) : Status::wrong_kind;
}

Status CudaDevice::close_import(void* imported) noexcept {
  Status closed = imports_.close_import(imported);
  if (closed == Status::not_found) closed = files_.close_import(imported);
  return closed == Status::not_found ? host_memory_.close_import(imported) : closed;
}

Result<void*> CudaDevice::import_allocation(const ExportRecord& record) noexcept {
  if (HostShares::made(record)) return host_memory_.import_allocation(record);
  if (!capabilities_.exports) return Status::not_supported;
  const auto live_id = [](const void* self, const void* pointer) noexcept {
    return static_cast<const CudaDevice*>(self)->buffer_id_at(pointer).value_or(0);
  };
  return imports_.import_allocation(record, live_id, this);
}

}  // namespace brant::port::memory
