#include "port/memory/host_memory.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <cstdlib>
#include <limits>

#include "base/memory_file.h"

namespace brant::port::memory {
namespace {

constexpr std::size_t kAlignment = 256;

/// Memory and swap of this machine. More than that is refused at once: the system would grant addresses for it and end
/// the process at some later write.
std::size_t machine_memory() noexcept {
  struct sysinfo info = {};
  if (::sysinfo(&info) != 0) return static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
  return (static_cast<std::size_t>(info.totalram) + static_cast<std::size_t>(info.totalswap)) * info.mem_unit;
}

}  // namespace

void* HostMemory::acquire(MemoryKind kind, std::size_t bytes) noexcept {
  if (bytes >= kSharedBytes) {
    if (const Result<void*> shared = shares_.allocate(bytes); shared) return *shared;
  }
  if (kind == MemoryKind::host) {
    void* pointer = nullptr;
    return ::posix_memalign(&pointer, kAlignment, bytes) == 0 ? pointer : nullptr;
  }
  const std::size_t mapped = whole_pages(bytes);
  if (mapped == 0) return nullptr;
  void* pointer = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pointer == MAP_FAILED ? nullptr : pointer;
}

void HostMemory::give_back(const PointerInfo& allocation) noexcept {
  if (shares_.free(allocation.base) == Status::ok) return;
  if (allocation.kind == MemoryKind::host) {
    std::free(allocation.base);
  } else {
    ::munmap(allocation.base, whole_pages(allocation.bytes));
  }
}

HostMemory::~HostMemory() {
  for (const PointerInfo& allocation : allocations_.take_all()) give_back(allocation);
}

Result<void*> HostMemory::allocate(MemoryKind kind, std::size_t bytes) noexcept {
  if (kind != MemoryKind::host && kind != MemoryKind::pinned) return Status::not_supported;
  if (bytes == 0) return Status::invalid_argument;
  if (bytes > machine_memory()) return Status::no_memory;
  void* pointer = acquire(kind, bytes);
  if (pointer == nullptr) return Status::no_memory;
  const PointerInfo allocation{
      .kind = kind, .device = -1, .base = pointer, .bytes = bytes, .buffer_id = next_buffer_id()};
  if (const Status status = allocations_.insert(allocation); status != Status::ok) {
    give_back(allocation);
    return status;
  }
  return pointer;
}

Status HostMemory::free(void* pointer) noexcept {
  const Result<PointerInfo> allocation =
      allocations_.remove(pointer);  // first: another thread may get the address next
  if (!allocation) return allocation.status();
  give_back(*allocation);
  return Status::ok;
}

Result<ExportRecord> HostMemory::export_allocation(const void* pointer) noexcept {
  const Result<PointerInfo> allocation = query(pointer);
  if (!allocation) return allocation.status();
  return shares_.export_allocation(*allocation, pointer);
}

}  // namespace brant::port::memory
