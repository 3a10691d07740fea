#include "bench/runner/driver_memory.h"

#include <fmt/format.h>

#include "base/dynamic_library.h"
#include "brant/base/status.h"

namespace brant::bench {
namespace {

/// What is needed of the driver, as programs without its headers declare it: 0 is success, a device pointer is a number
/// of 64 bits.
struct Driver {
  using Context = struct Opaque*;
  int (*init)(unsigned) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*primary_retain)(Context*, int) = nullptr;
  int (*context_push)(Context) = nullptr;
  int (*context_pop)(Context*) = nullptr;
  int (*allocate)(unsigned long long*, std::size_t) = nullptr;
  int (*free)(unsigned long long) = nullptr;
};

Driver load() {
  const DynamicLibrary library("libcuda.so.1");
  if (!library) throw Error(Status::not_supported, fmt::format("no NVIDIA driver: {}", library.why_not()));
  FunctionFinder functions(library);
  Driver driver;
  functions.need(driver.init, "cuInit");
  functions.need(driver.device_get, "cuDeviceGet");
  functions.need(driver.primary_retain, "cuDevicePrimaryCtxRetain");
  functions.need(driver.context_push, "cuCtxPushCurrent_v2");
  functions.need(driver.context_pop, "cuCtxPopCurrent_v2");
  functions.need(driver.allocate, "cuMemAlloc_v2");
  functions.need(driver.free, "cuMemFree_v2");
  if (functions.missing() != nullptr) {
    throw Error(Status::not_supported, fmt::format("the NVIDIA driver has no {}", functions.missing()));
  }
  return driver;
}

const Driver& driver() {
  static const LoadedOnce<Driver> loaded(&load);
  return loaded.get();
}

void require(int result, const char* call) {
  if (result == 0) return;
  constexpr int kOutOfMemory = 2;
  throw Error(result == kOutOfMemory ? Status::no_memory : Status::io_error,
              fmt::format("{} failed: error {} of the CUDA driver", call, result));
}

/// The primary context is current on this thread as long as this lives. brant has retained it, so it stays.
class Current {
 public:
  explicit Current(int ordinal) {
    int device = 0;
    Driver::Context context = nullptr;
    require(driver().init(0), "cuInit");
    require(driver().device_get(&device, ordinal), "cuDeviceGet");
    require(driver().primary_retain(&context, device), "cuDevicePrimaryCtxRetain");
    require(driver().context_push(context), "cuCtxPushCurrent");
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    Driver::Context before = nullptr;
    static_cast<void>(driver().context_pop(&before));
  }
};

}  // namespace

std::shared_ptr<void> driver_memory(int ordinal, std::size_t bytes) {
  const Current current(ordinal);
  unsigned long long address = 0;
  require(driver().allocate(&address, bytes), "cuMemAlloc");
  const auto free = [ordinal](void* block) {
    const Current again(ordinal);
    static_cast<void>(driver().free(reinterpret_cast<unsigned long long>(block)));
  };
  return {reinterpret_cast<void*>(address), free};
}

}  // namespace brant::bench
