#include "support/driver_memory.h"

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

DriverMemory::DriverMemory(Sort sort, std::size_t bytes, int gpu) : gpu_(gpu), bytes_(bytes) {
  if (sort == Sort::created || sort == Sort::created_private) pieces_ = 1;
  if (sort == Sort::segments) pieces_ = 2;
  const bool shareable = sort != Sort::created_private && sort != Sort::default_pool;
  if (!(pieces_ != 0 ? create(shareable) : allocate(shareable))) pointer_ = nullptr;
}

bool DriverMemory::create(bool shareable) {
  AllocationProp prop;
  prop.handle_types = shareable ? 1 : 0;
  prop.location.id = gpu_;
  std::size_t step = 0;
  if (!call("cuMemGetAllocationGranularity", &step, static_cast<const AllocationProp*>(&prop), 0)) return false;
  step *= pieces_;
  bytes_ = (bytes_ + step - 1) / step * step;
  Pointer base = 0;
  if (!call("cuMemAddressReserve", &base, bytes_, std::size_t{0}, Pointer{0}, 0ull)) return false;
  pointer_ = reinterpret_cast<std::byte*>(base);
  bool made = true;
  for (std::size_t piece = 0; piece < pieces_; ++piece) made = map_piece(piece, shareable) && made;
  return made;
}

bool DriverMemory::map_piece(std::size_t piece, bool shareable) {
  AllocationProp prop;
  prop.handle_types = shareable ? 1 : 0;
  prop.location.id = gpu_;
  const std::size_t bytes = bytes_ / pieces_;
  const Pointer at = reinterpret_cast<Pointer>(pointer_) + piece * bytes;
  unsigned long long handle = 0;
  if (!call("cuMemCreate", &handle, bytes, static_cast<const AllocationProp*>(&prop), 0ull)) return false;
  Access access;
  access.location.id = gpu_;
  const bool mapped = call("cuMemMap", at, bytes, std::size_t{0}, handle, 0ull) &&
                      call("cuMemSetAccess", at, bytes, static_cast<const Access*>(&access), std::size_t{1});
  return call("cuMemRelease", handle) && mapped;
}

bool DriverMemory::map_anew() {
  return call("cuMemUnmap", reinterpret_cast<Pointer>(pointer_), bytes_ / pieces_) && map_piece(0, true);
}

bool DriverMemory::allocate(bool shareable) {
  Pointer base = 0;
  void* const stream = nullptr;
  if (shareable) {
    PoolProps props;
    props.handle_types = 1;
    props.location.id = gpu_;
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
  bool freed = true;
  if (pieces_ != 0) {
    for (std::size_t piece = 0; piece < pieces_; ++piece)
      freed = call("cuMemUnmap", base + piece * (bytes_ / pieces_), bytes_ / pieces_) && freed;
    freed = call("cuMemAddressFree", base, bytes_) && freed;
  } else {
    freed = call("cuMemFree", base) && (pool_ == nullptr || call("cuMemPoolDestroy", pool_));
  }
  if (!freed) std::abort();
}

}  // namespace brant::test
