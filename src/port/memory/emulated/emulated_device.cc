#include "port/memory/emulated/emulated_device.h"

#include <unistd.h>

#include <fmt/format.h>

#include "base/log.h"
#include "port/memory/adapters.h"

namespace brant::port::memory {
namespace {

std::size_t half_of_machine_memory() noexcept {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) / 2 * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

DeviceCapabilities describe(const EmulatedOptions& options) {
  DeviceCapabilities capabilities;
  capabilities.name = "emulated";
  capabilities.id = fmt::format("emulated-{}-{}", ::getpid(), options.ordinal);
  capabilities.driver = "threads of this process";
  capabilities.ordinal = options.ordinal;
  capabilities.processors = options.blocks_at_once;
  capabilities.memory_bytes = options.memory_bytes != 0 ? options.memory_bytes : half_of_machine_memory();
  capabilities.kinds = kHostKinds | (1u << static_cast<unsigned>(MemoryKind::emulated));
  capabilities.streams = true;
  capabilities.kernels = true;
  capabilities.exports = !options.files_only;
  capabilities.export_block_bytes = std::size_t{2} << 20;  // as CUDA's
  capabilities.file_exports = true;
  capabilities.stream_words = true;
  capabilities.cooperative = true;
  return capabilities;
}

}  // namespace

EmulatedDevice::EmulatedDevice(const EmulatedOptions& options)
    : capabilities_(describe(options)),
      streams_(options, staying_kernels()),
      kernels_(streams_, staying_kernels(), options.blocks_at_once) {}

EmulatedDevice::~EmulatedDevice() {
  streams_.close();  // kernels use memory that nothing else keeps alive
  if (const std::size_t pieces = memory_.release_all(owner()); pieces > 0) {
    log::debug("emulated device {}: {} allocations or imports were still open", capabilities_.ordinal, pieces);
  }
  for (const PointerInfo& range : host_memory_.allocations()) {
    if (range.kind == MemoryKind::pinned && !memory_.reachable_host().remove(range.base)) continue;
  }
}

Result<void*> EmulatedDevice::allocate(MemoryKind kind, std::size_t bytes) noexcept {
  if (kind == MemoryKind::emulated) return allocate_emulated(bytes);
  if (kind == MemoryKind::pinned) return allocate_pinned(bytes);
  return host_memory_.allocate(kind, bytes);
}

Result<void*> EmulatedDevice::allocate_pinned(std::size_t bytes) noexcept {
  const Result<void*> pointer = host_memory_.allocate(MemoryKind::pinned, bytes);
  if (!pointer) return pointer;
  const Result<PointerInfo> info = host_memory_.query(*pointer);
  const Status status = info ? memory_.reachable_host().insert(*info) : info.status();
  if (status == Status::ok) return pointer;
  if (host_memory_.free(*pointer) != Status::ok) return Status::internal;
  return status;
}

Result<void*> EmulatedDevice::allocate_emulated(std::size_t bytes) noexcept {
  if (bytes == 0) return Status::invalid_argument;
  const std::size_t before = bytes_in_use_.fetch_add(bytes, std::memory_order_relaxed);
  Result<PointerInfo> info = Status::no_memory;
  if (before <= capabilities_.memory_bytes && bytes <= capabilities_.memory_bytes - before) {
    info = memory_.allocate(owner(), bytes);
  }
  if (!info) {
    bytes_in_use_.fetch_sub(bytes, std::memory_order_relaxed);
    return info.status();
  }
  return info->base;
}

Status EmulatedDevice::free(void* pointer) noexcept {
  const Result<PointerInfo> info = memory_.free(owner(), pointer);
  if (info) {
    staying_kernels().expect_none("free");
    bytes_in_use_.fetch_sub(info->bytes, std::memory_order_relaxed);
    return Status::ok;
  }
  if (info.status() != Status::not_found) return info.status();
  const Result<PointerInfo> host = host_memory_.query(pointer);
  if (!host) return Status::not_found;
  if (host->base != pointer) return Status::invalid_argument;
  if (host->kind == MemoryKind::pinned) staying_kernels().expect_none("free");
  // Forgotten first: freed host addresses are handed out again at once.
  if (host->kind == MemoryKind::pinned && !memory_.reachable_host().remove(pointer)) return Status::not_found;
  return host_memory_.free(pointer);
}

Result<PointerInfo> EmulatedDevice::query(const void* pointer) noexcept {
  Result<PointerInfo> info = memory_.query(pointer);
  return info ? info : host_memory_.query(pointer);
}

Result<void*> EmulatedDevice::open_host_window(void* pointer, std::size_t bytes) noexcept {
  const Result<PointerInfo> info = memory_.query(pointer);
  if (!info) return info.status();
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(pointer) - static_cast<std::byte*>(info->base));
  if (bytes > info->bytes - offset) return Status::invalid_argument;
  return memory_.engine_address(pointer);
}

Result<ExportRecord> EmulatedDevice::export_allocation(const void* pointer) noexcept {
  Result<ExportRecord> record = memory_.export_allocation(pointer);
  if (record && !capabilities_.exports) return Status::not_supported;
  if (record || record.status() != Status::not_found) return record;
  record = host_memory_.export_allocation(pointer);
  if (record || record.status() != Status::not_found) return record;
  return query(pointer).ok() ? Status::wrong_kind : Status::not_found;
}

Result<void*> EmulatedDevice::import_allocation(const ExportRecord& record) noexcept {
  return HostShares::made(record) ? host_memory_.import_allocation(record) : memory_.import_allocation(owner(), record);
}

Status EmulatedDevice::close_import(void* imported) noexcept {
  const Status closed = memory_.close_import(imported);
  if (closed == Status::not_found) return host_memory_.close_import(imported);
  staying_kernels().expect_none("close_import");
  return closed;
}

std::unique_ptr<Device> open_emulated_device(const EmulatedOptions& options) {
  return std::make_unique<EmulatedDevice>(options);
}

}  // namespace brant::port::memory
