// The stand-in's memory as files: of cuMemCreate and of pools. What is created and what is reserved are objects here,
// as with the driver; a pool's file is any file, and the record of an allocation says where that is.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "conformance/memory/fake_cuda_state.h"

namespace brant::test::fake_cuda {
namespace {

constexpr int kFileType = 1;  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
constexpr Result kNotPermitted = 800;

struct Created {
  int fd = -1;
  std::size_t bytes = 0;
  bool shareable = false;
  int references = 1;
};
struct Pool {
  bool shareable = false;
};
struct CreateProp {  // CUmemAllocationProp and CUmemPoolProps begin alike
  std::int32_t type;
  std::int32_t handle_types;
};

std::map<std::uintptr_t, std::size_t> g_reserved;  // protected by g_mutex, as the next
std::map<std::uintptr_t, Created*> g_mapped;
Pool g_default_pool;

void let_go(Created* created) {
  if (--created->references > 0) return;
  ::close(created->fd);
  delete created;
}

Result granularity(std::size_t* bytes, const CreateProp*, int) { return *bytes = 4096, kSuccess; }

Result create(unsigned long long* handle, std::size_t bytes, const CreateProp* prop, unsigned long long) {
  if (const Result result = enter("cuMemCreate"); result != kSuccess) return result;
  if (bytes == 0 || bytes % 4096 != 0) return kInvalidValue;
  auto* made = new Created{.fd = ::memfd_create("fake-cuda-created", MFD_CLOEXEC), .bytes = bytes};
  made->shareable = (prop->handle_types & kFileType) != 0;
  if (::ftruncate(made->fd, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  return *handle = reinterpret_cast<std::uintptr_t>(made), kSuccess;
}
Result release(unsigned long long handle) {
  const std::lock_guard lock(g_mutex);
  let_go(reinterpret_cast<Created*>(handle));
  return enter("cuMemRelease");
}
Result reserve(DevicePointer* pointer, std::size_t bytes, std::size_t, DevicePointer, unsigned long long) {
  if (const Result result = enter("cuMemAddressReserve"); result != kSuccess) return result;
  void* base = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return kOutOfMemory;
  const std::lock_guard lock(g_mutex);
  g_reserved[reinterpret_cast<std::uintptr_t>(base)] = bytes;
  return *pointer = reinterpret_cast<DevicePointer>(base), kSuccess;
}
Result address_free(DevicePointer pointer, std::size_t bytes) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_reserved.find(pointer);
  if (found == g_reserved.end() || found->second != bytes) return kInvalidValue;
  const auto mapped = g_mapped.lower_bound(pointer);
  if (mapped != g_mapped.end() && mapped->first < pointer + bytes) return kInvalidValue;
  ::munmap(reinterpret_cast<void*>(pointer), bytes);
  g_reserved.erase(found);
  return enter("cuMemAddressFree");
}
Result map(DevicePointer pointer, std::size_t bytes, std::size_t offset, unsigned long long handle,
           unsigned long long) {
  if (const Result result = enter("cuMemMap"); result != kSuccess) return result;
  const std::lock_guard lock(g_mutex);
  auto* created = reinterpret_cast<Created*>(handle);
  const auto after = g_reserved.upper_bound(pointer);
  if (after == g_reserved.begin() || bytes != created->bytes || offset != 0) return kInvalidValue;
  const auto reserved = std::prev(after);
  if (pointer + bytes > reserved->first + reserved->second) return kInvalidValue;
  ++created->references;
  g_mapped[pointer] = created;
  // Without access yet, as with the driver. Its file is the stand-in's to close with the object.
  void* const mapped =
      ::mmap(reinterpret_cast<void*>(pointer), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, created->fd, 0);
  if (mapped == MAP_FAILED) return kInvalidValue;
  g_memory[pointer] = {.bytes = bytes,
                       .type = 2,
                       .pool = true,
                       .device = 0,
                       .id = ++g_last_id,
                       .reserved = reserved->first,
                       .reserved_bytes = reserved->second};
  return kSuccess;
}
Result set_access(DevicePointer pointer, std::size_t bytes, const void*, std::size_t count) {
  if (const Result result = enter("cuMemSetAccess"); result != kSuccess) return result;
  const std::lock_guard lock(g_mutex);
  if (!g_mapped.contains(pointer) || count != 1) return kInvalidValue;
  return ::mprotect(reinterpret_cast<void*>(pointer), bytes, PROT_READ | PROT_WRITE) == 0 ? kSuccess : kInvalidValue;
}
Result unmap(DevicePointer pointer, std::size_t bytes) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_mapped.find(pointer);
  if (found == g_mapped.end() || found->second->bytes != bytes) return kInvalidValue;
  void* const reserved =
      ::mmap(reinterpret_cast<void*>(pointer), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (reserved == MAP_FAILED) return kInvalidValue;
  let_go(found->second);
  g_mapped.erase(found);
  g_memory.erase(pointer);
  return enter("cuMemUnmap");
}
Result address_range(DevicePointer* base, std::size_t* bytes, DevicePointer pointer) {
  const std::lock_guard lock(g_mutex);
  const auto found = memory_at(pointer);
  if (found == g_memory.end()) return kInvalidValue;
  return *base = found->first, *bytes = found->second.bytes, enter("cuMemGetAddressRange");
}
Result retain(unsigned long long* handle, void* pointer) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_mapped.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == g_mapped.end()) return kInvalidValue;
  ++found->second->references;
  return *handle = reinterpret_cast<std::uintptr_t>(found->second), enter("cuMemRetainAllocationHandle");
}
Result export_created(int* file, unsigned long long handle, int type, unsigned long long) {
  if (const Result result = enter("cuMemExportToShareableHandle"); result != kSuccess) return result;
  const auto* created = reinterpret_cast<Created*>(handle);
  if (type != kFileType || !created->shareable) return kNotPermitted;
  return *file = ::fcntl(created->fd, F_DUPFD_CLOEXEC, 0), kSuccess;
}
Result import_created(unsigned long long* handle, void* file, int type) {
  if (const Result result = enter("cuMemImportFromShareableHandle"); result != kSuccess) return result;
  const int fd = static_cast<int>(reinterpret_cast<std::uintptr_t>(file));
  struct stat info = {};
  if (type != kFileType || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return kInvalidValue;
  auto* made = new Created{.fd = ::fcntl(fd, F_DUPFD_CLOEXEC, 0), .bytes = static_cast<std::size_t>(info.st_size)};
  return *handle = reinterpret_cast<std::uintptr_t>(made), kSuccess;
}

Result pool_create(void** pool, const CreateProp* prop) {
  *pool = new Pool{.shareable = (prop->handle_types & kFileType) != 0};
  return enter("cuMemPoolCreate");
}
Result pool_destroy(void* pool) {
  delete static_cast<Pool*>(pool);
  return enter("cuMemPoolDestroy");
}
Result alloc_from_pool(DevicePointer* pointer, std::size_t bytes, void* pool, void*) {
  if (const Result result = enter("cuMemAllocFromPoolAsync"); result != kSuccess) return result;
  return take(pointer, bytes, {.type = 2, .pool = true, .of_pool = pool, .device = 0});
}
Result context_synchronize() { return enter("cuCtxSynchronize"); }
Result alloc_async(DevicePointer* pointer, std::size_t bytes, void* stream) {
  return alloc_from_pool(pointer, bytes, &g_default_pool, stream);
}
Result pool_export(int* file, void* pool, int type, unsigned long long) {
  if (const Result result = enter("cuMemPoolExportToShareableHandle"); result != kSuccess) return result;
  if (type != kFileType || !static_cast<Pool*>(pool)->shareable) return kInvalidValue;
  return *file = ::memfd_create("fake-cuda-pool", MFD_CLOEXEC), kSuccess;
}
Result pool_import(void** pool, void* file, int type, unsigned long long) {
  if (const Result result = enter("cuMemPoolImportFromShareableHandle"); result != kSuccess) return result;
  const int fd = static_cast<int>(reinterpret_cast<std::uintptr_t>(file));
  struct stat info = {};
  if (type != kFileType || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return kInvalidValue;
  return *pool = new Pool, kSuccess;
}
Result pool_set_access(void*, const void*, std::size_t count) {
  return count == 1 ? enter("cuMemPoolSetAccess") : kInvalidValue;
}
Result pool_export_pointer(Handle* place, DevicePointer pointer) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_memory.find(pointer);
  if (found == g_memory.end() || found->second.of_pool == nullptr) return kInvalidValue;
  *place = {.pid = ::getpid(), .fd = found->second.fd, .bytes = found->second.bytes, .inode = 0, .rest = {}};
  return enter("cuMemPoolExportPointer");
}
Result pool_import_pointer(DevicePointer* pointer, void* pool, const Handle* place) {
  {
    // As the driver does: one address for one place, and one free.
    const std::lock_guard lock(g_mutex);
    for (const auto& [base, memory] : g_memory) {
      if (memory.place == std::pair(place->pid, place->fd)) return *pointer = base, kSuccess;
    }
  }
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", place->pid, place->fd);
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return kInvalidValue;
  void* base = ::mmap(nullptr, mapped_bytes(place->bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return ::close(fd), kOutOfMemory;
  const std::lock_guard lock(g_mutex);
  g_memory[reinterpret_cast<std::uintptr_t>(base)] = {.bytes = place->bytes,
                                                      .type = 2,
                                                      .pool = true,
                                                      .of_pool = pool,
                                                      .imported = true,
                                                      .fd = fd,
                                                      .device = 0,
                                                      .id = ++g_last_id,
                                                      .place = {place->pid, place->fd}};
  return *pointer = reinterpret_cast<DevicePointer>(base), enter("cuMemPoolImportPointer");
}

/// A dma-buf of an allocation's memory, which the CPU may map here.
Result handle_for_range(int* fd, DevicePointer pointer, std::size_t bytes, int type, unsigned long long) {
  if (const Result result = enter("cuMemGetHandleForAddressRange"); result != kSuccess) return result;
  const std::lock_guard lock(g_mutex);
  const auto found = memory_at(pointer);
  constexpr int kDmaBuf = 1;
  if (type != kDmaBuf || found == g_memory.end() || pointer != found->first || bytes > found->second.bytes)
    return kInvalidValue;
  *fd = ::fcntl(found->second.fd, F_DUPFD_CLOEXEC, 0);
  return *fd < 0 ? kOutOfMemory : kSuccess;
}

const Symbol kFileSymbols[] = {
    symbol("cuMemGetHandleForAddressRange", handle_for_range, 11070),
    symbol("cuMemGetAllocationGranularity", granularity, 10020),
    symbol("cuMemCreate", create, 10020),
    symbol("cuMemRelease", release, 10020),
    symbol("cuMemAddressReserve", reserve, 10020),
    symbol("cuMemAddressFree", address_free, 10020),
    symbol("cuMemMap", map, 10020),
    symbol("cuMemUnmap", unmap, 10020),
    symbol("cuMemSetAccess", set_access, 10020),
    symbol("cuMemGetAddressRange", address_range, 3020),
    symbol("cuMemRetainAllocationHandle", retain, 11000),
    symbol("cuMemExportToShareableHandle", export_created, 10020),
    symbol("cuMemImportFromShareableHandle", import_created, 10020),
    symbol("cuMemPoolCreate", pool_create, 11020),
    symbol("cuMemPoolDestroy", pool_destroy, 11020),
    symbol("cuMemAllocAsync", alloc_async, 11020),
    symbol("cuCtxSynchronize", context_synchronize, 2000),
    symbol("cuMemAllocFromPoolAsync", alloc_from_pool, 11020),
    symbol("cuMemPoolExportToShareableHandle", pool_export, 11020),
    symbol("cuMemPoolImportFromShareableHandle", pool_import, 11020),
    symbol("cuMemPoolSetAccess", pool_set_access, 11020),
    symbol("cuMemPoolExportPointer", pool_export_pointer, 11020),
    symbol("cuMemPoolImportPointer", pool_import_pointer, 11020),
};

}  // namespace

std::span<const Symbol> file_symbols() { return kFileSymbols; }

}  // namespace brant::test::fake_cuda
