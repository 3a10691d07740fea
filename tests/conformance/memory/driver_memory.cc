#include "conformance/memory/driver_memory.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>

namespace brant::test {
namespace {

// As in cuda.h, which tests do without.
struct Location {
  std::int32_t type = 1;  // a device
  std::int32_t id = 0;
};
struct AllocationProp {
  std::int32_t type = 1;  // pinned
  std::int32_t handle_types = 0;
  Location location;
  void* nothing = nullptr;
  std::uint8_t flags[8] = {};
};
struct PoolProps {
  std::int32_t type = 1;
  std::int32_t handle_types = 0;
  Location location;
  void* nothing = nullptr;
  std::size_t bytes_max = 0;
  std::uint8_t reserved[56] = {};
};
struct Access {
  Location location;
  std::int32_t flags = 3;  // read and write
};

template <typename... Args>
bool call(const char* name, Args... arguments) {
  using Lookup = int (*)(const char*, void**, int, std::uint64_t, int*);
  static const auto lookup =
      reinterpret_cast<Lookup>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), "cuGetProcAddress_v2"));
  void* found = nullptr;
  int outcome = 0;
  if (lookup == nullptr || lookup(name, &found, 12000, 1, &outcome) != 0 || found == nullptr) return false;
  return reinterpret_cast<int (*)(Args...)>(found)(arguments...) == 0;
}

using Pointer = unsigned long long;

}  // namespace

DriverMemory::DriverMemory(Sort sort, std::size_t bytes) : sort_(sort), bytes_(bytes) {
  const bool created = sort == Sort::created || sort == Sort::created_private;
  const bool shareable = sort == Sort::created || sort == Sort::pooled;
  if (!(created ? create(shareable) : allocate(shareable))) pointer_ = nullptr;
}

bool DriverMemory::create(bool shareable) {
  AllocationProp prop;
  prop.handle_types = shareable ? 1 : 0;
  std::size_t step = 0;
  if (!call("cuMemGetAllocationGranularity", &step, static_cast<const AllocationProp*>(&prop), 0)) return false;
  bytes_ = (bytes_ + step - 1) / step * step;
  unsigned long long handle = 0;
  if (!call("cuMemCreate", &handle, bytes_, static_cast<const AllocationProp*>(&prop), 0ull)) return false;
  Pointer base = 0;
  const Access access;
  const bool made = call("cuMemAddressReserve", &base, bytes_, std::size_t{0}, Pointer{0}, 0ull) &&
                    call("cuMemMap", base, bytes_, std::size_t{0}, handle, 0ull) &&
                    call("cuMemSetAccess", base, bytes_, &access, std::size_t{1});
  pointer_ = reinterpret_cast<std::byte*>(base);
  return call("cuMemRelease", handle) && made;
}

bool DriverMemory::allocate(bool shareable) {
  Pointer base = 0;
  void* const stream = nullptr;
  if (shareable) {
    PoolProps props;
    props.handle_types = 1;
    if (!call("cuMemPoolCreate", &pool_, static_cast<const PoolProps*>(&props))) return false;
    if (!call("cuMemAllocFromPoolAsync", &base, bytes_, pool_, stream)) return false;
  } else if (!call("cuMemAllocAsync", &base, bytes_, stream)) {
    return false;
  }
  pointer_ = reinterpret_cast<std::byte*>(base);
  return call("cuCtxSynchronize");
}

void DriverMemory::free_now() {
  if (pointer_ == nullptr) return;
  const auto base = reinterpret_cast<Pointer>(pointer_);
  pointer_ = nullptr;
  bool freed = false;
  if (sort_ == Sort::created || sort_ == Sort::created_private) {
    freed = call("cuMemUnmap", base, bytes_) && call("cuMemAddressFree", base, bytes_);
  } else {
    freed = call("cuMemFree", base) && (pool_ == nullptr || call("cuMemPoolDestroy", pool_));
  }
  if (!freed) std::abort();
}

}  // namespace brant::test
