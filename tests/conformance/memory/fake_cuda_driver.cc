// A stand-in for NVIDIA's driver, built as libcuda.so.1: the functions the CUDA adapter calls, over host memory, done
// at once. It lets a machine without a GPU check the adapter's own work: lookups, contexts, records, error codes,
// clean-up. It says nothing about a GPU's timing or order. Its one kernel, of an image that begins with "fake", does
// nothing.
//
// Read at start: FAKE_CUDA_DEVICES (2), FAKE_CUDA_INIT (the answer of cuInit), FAKE_CUDA_OLD (no cuGetProcAddress_v2
// behind the name), FAKE_CUDA_WITHOUT (a function the driver does not have), FAKE_CUDA_NAME (of the devices). When a
// device is opened: FAKE_CUDA_WORDS (streams have memory operations: 0), FAKE_CUDA_COOPERATIVE (launches: 1).
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/memory/fake_cuda_state.h"

namespace {

using namespace brant::test::fake_cuda;

// --- The driver's functions, in the order of the adapter's table
// ------------------------------------------------------

Result init(unsigned) { return std::atoi(variable("FAKE_CUDA_INIT", "0")); }
Result driver_version(int* version) { return *version = 13000, kSuccess; }
Result error_name(Result code, const char** text) {
  if (code == kOutOfMemory) return *text = "CUDA_ERROR_OUT_OF_MEMORY", kSuccess;
  if (code == 100) return *text = "CUDA_ERROR_NO_DEVICE", kSuccess;
  if (code == 719) return *text = "CUDA_ERROR_LAUNCH_FAILED", kSuccess;
  if (code > 999) return kInvalidValue;
  return *text = "CUDA_ERROR_OF_THE_FAKE", kSuccess;
}
Result error_string(Result code, const char** text) {
  return *text = code == 2 ? "out of memory" : "as told", kSuccess;
}

Result device_get_count(int* count) { return *count = device_count(), enter("cuDeviceGetCount", false); }
Result device_get(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= device_count()) return kInvalidDevice;
  return *device = ordinal, enter("cuDeviceGet", false);
}
Result device_get_name(char* name, int length, int device) {
  std::snprintf(name, static_cast<std::size_t>(length), "%s %d", variable("FAKE_CUDA_NAME", "Fake GPU"), device);
  return enter("cuDeviceGetName", false);
}
Result device_get_uuid(void* uuid, int device) {
  for (int i = 0; i < 16; ++i) static_cast<unsigned char*>(uuid)[i] = static_cast<unsigned char>(i * 17);
  static_cast<unsigned char*>(uuid)[15] = static_cast<unsigned char>(device);
  return kSuccess;
}
Result device_total_mem(std::size_t* bytes, int) { return *bytes = kDeviceBytes, kSuccess; }
Result device_get_attribute(int* value, int which, int) {
  switch (which) {
    case 16: *value = 3; break;  // multiprocessors
    case 75: *value = 9; break;  // compute capability 9.0
    case 76: *value = 0; break;
    case 95: *value = std::atoi(variable("FAKE_CUDA_COOPERATIVE", "1")); break;
    // Streams here are done at once, so that they cannot wait for the CPU: only for those who know.
    case 122: *value = std::atoi(variable("FAKE_CUDA_WORDS", "0")); break;
    default: *value = 1;  // every other ability is there
  }
  return kSuccess;
}
Result device_get_pci_bus_id(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", 0x1b + device);
  return kSuccess;
}

Result can_access_peer(int* possible, int from, int to) {
  if (from < 0 || to < 0 || from >= device_count() || to >= device_count()) return kInvalidDevice;
  return *possible = from != to, enter("cuDeviceCanAccessPeer", false);
}
Result get_p2p_attribute(int* value, int which, int, int) {
  *value = which == 3;  // native atomics, no arrays, rank 0
  return enter("cuDeviceGetP2PAttribute", false);
}

Result context_retain(void** context, int device) {
  if (const Result result = enter("cuDevicePrimaryCtxRetain", false); result != kSuccess) return result;
  const std::lock_guard lock(g_mutex);
  g_contexts[device].device = device;
  ++g_contexts[device].retained;
  return *context = &g_contexts[device], kSuccess;
}
Result context_release(int device) {
  if (const Result result = enter("cuDevicePrimaryCtxRelease", false); result != kSuccess) return result;
  const std::lock_guard lock(g_mutex);
  return g_contexts[device].retained-- > 0 ? kSuccess : kInvalidContext;
}
Result context_get_current(void** context) { return *context = t_current, enter("cuCtxGetCurrent", false); }
Result context_set_current(void* context) { return t_current = context, enter("cuCtxSetCurrent", false); }
thread_local void* t_below = nullptr;  // one level of the stack is all the adapter may use
Result context_push(void* context) {
  t_below = t_current;
  return t_current = context, enter("cuCtxPushCurrent", false);
}
Result context_pop(void** context) {
  *context = t_current;
  return t_current = t_below, enter("cuCtxPopCurrent", false);
}

Result mem_alloc(DevicePointer* pointer, std::size_t bytes) {
  const Result result = enter("cuMemAlloc");
  if (result != kSuccess) return result;
  return take(pointer, bytes, {.type = 2, .device = static_cast<Context*>(t_current)->device});
}
Result mem_free(DevicePointer pointer) {
  const Result result = enter("cuMemFree");
  return result != kSuccess ? result : give_back(pointer);
}
Result mem_alloc_managed(DevicePointer* pointer, std::size_t bytes, unsigned) {
  const Result result = enter("cuMemAllocManaged");
  return result != kSuccess ? result : take(pointer, bytes, {.type = 2, .managed = true, .device = 0});
}
Result mem_host_alloc(void** pointer, std::size_t bytes, unsigned) {
  const Result result = enter("cuMemHostAlloc");
  return result != kSuccess ? result : take(reinterpret_cast<DevicePointer*>(pointer), bytes, {.type = 1, .device = 0});
}
Result mem_free_host(void* pointer) {
  const Result result = enter("cuMemFreeHost");
  return result != kSuccess ? result : give_back(reinterpret_cast<DevicePointer>(pointer));
}
Result mem_host_register(void* pointer, std::size_t bytes, unsigned) {
  if (const Result result = enter("cuMemHostRegister"); result != kSuccess) return result;
  const std::lock_guard lock(g_mutex);
  if (bytes == 0) return kInvalidValue;
  if (memory_at(reinterpret_cast<DevicePointer>(pointer)) != g_memory.end()) return kAlreadyRegistered;
  g_memory[reinterpret_cast<std::uintptr_t>(pointer)] = {.bytes = bytes, .type = 1, .registered = true, .device = 0};
  return kSuccess;
}
Result mem_host_unregister(void* pointer) {
  if (const Result result = enter("cuMemHostUnregister"); result != kSuccess) return result;
  const std::lock_guard lock(g_mutex);
  const auto found = g_memory.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == g_memory.end() || !found->second.registered) return kNotRegistered;
  g_memory.erase(found);
  return kSuccess;
}

void store_attribute(void* data, int attribute, std::uintptr_t base, const Memory& memory) {
  switch (attribute) {
    case 2: *static_cast<unsigned*>(data) = memory.type; break;
    case 7: *static_cast<unsigned long long*>(data) = memory.id; break;
    case 8: *static_cast<unsigned char*>(data) = memory.managed ? 1 : 0; break;
    case 9: *static_cast<int*>(data) = memory.device; break;
    case 10: *static_cast<unsigned char*>(data) = memory.type == 2 && !memory.pool && !memory.managed ? 1 : 0; break;
    case 17: *static_cast<void**>(data) = memory.of_pool; break;
    case 11: *static_cast<DevicePointer*>(data) = memory.reserved != 0 ? memory.reserved : base; break;
    case 12: *static_cast<std::size_t*>(data) = memory.reserved != 0 ? memory.reserved_bytes : memory.bytes; break;
    default: std::abort();  // the fake must be taught it first
  }
}
Result pointer_get_attribute(void* data, int attribute, DevicePointer pointer) {
  if (const Result result = enter("cuPointerGetAttribute", false); result != kSuccess) return result;
  const std::lock_guard lock(g_mutex);
  const auto found = memory_at(pointer);
  if (found == g_memory.end() || (attribute == 7 && found->second.registered)) return kInvalidValue;
  store_attribute(data, attribute, found->first, found->second);
  return kSuccess;
}
Result pointer_get_attributes(unsigned count, int* attributes, void** data, DevicePointer pointer) {
  if (const Result result = enter("cuPointerGetAttributes", false); result != kSuccess) return result;
  const std::lock_guard lock(g_mutex);
  const auto found = memory_at(pointer);
  for (unsigned i = 0; i < count; ++i) {
    const bool known = found != g_memory.end();
    store_attribute(data[i], attributes[i], known ? found->first : 0, known ? found->second : Memory{.device = -2});
  }
  return kSuccess;
}

Result ipc_get(Handle* handle, DevicePointer pointer) {
  if (const Result result = enter("cuIpcGetMemHandle"); result != kSuccess) return result;
  const std::lock_guard lock(g_mutex);
  const auto found = g_memory.find(pointer);
  if (found == g_memory.end() || found->second.type != 2 || found->second.pool) return kInvalidValue;
  struct stat info = {};
  ::fstat(found->second.fd, &info);
  *handle = {.pid = ::getpid(), .fd = found->second.fd, .bytes = found->second.bytes, .inode = info.st_ino, .rest = {}};
  return kSuccess;
}
Result ipc_open(DevicePointer* pointer, Handle handle, unsigned flags) {
  if (const Result result = enter("cuIpcOpenMemHandle"); result != kSuccess) return result;
  if (flags != 1) return kInvalidValue;
  if (handle.pid == ::getpid()) return kInvalidContext;  // as the real one
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle.pid, handle.fd);
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  struct stat info = {};
  if (fd < 0) return kInvalidValue;
  if (::fstat(fd, &info) != 0 || info.st_ino != handle.inode) return ::close(fd), kInvalidValue;
  void* base = ::mmap(nullptr, mapped_bytes(handle.bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return ::close(fd), kOutOfMemory;
  const std::lock_guard lock(g_mutex);
  g_memory[reinterpret_cast<std::uintptr_t>(base)] = {
      .bytes = handle.bytes, .type = 2, .imported = true, .fd = fd, .device = 0, .id = ++g_last_id};
  return *pointer = reinterpret_cast<DevicePointer>(base), kSuccess;
}
Result ipc_close(DevicePointer pointer) {
  if (const Result result = enter("cuIpcCloseMemHandle"); result != kSuccess) return result;
  return give_back(pointer);
}

constexpr int kLowestPriority = 0, kHighestPriority = -5;

Result stream_priority_range(int* lowest, int* highest) {
  if (const Result result = enter("cuCtxGetStreamPriorityRange"); result != kSuccess) return result;
  *lowest = kLowestPriority;
  *highest = kHighestPriority;
  return kSuccess;
}

Result stream_create(void** stream, unsigned flags, int priority) {
  if (const Result result = enter("cuStreamCreateWithPriority"); result != kSuccess) return result;
  if (flags != 1) return kInvalidValue;  // CU_STREAM_NON_BLOCKING is what the interface promises
  if (priority > kLowestPriority || priority < kHighestPriority) return kInvalidValue;
  const std::lock_guard lock(g_mutex);
  *stream = std::malloc(16);
  g_streams.insert(*stream);
  return kSuccess;
}
Result stream_destroy(void* stream) {
  const std::lock_guard lock(g_mutex);
  if (g_streams.erase(stream) == 0) return kInvalidHandle;
  std::free(stream);
  return enter("cuStreamDestroy");
}
Result on_stream(const char* name, void* stream) {
  const Result result = enter(name);
  return result != kSuccess ? result : known_stream(stream) ? kSuccess : kInvalidHandle;
}
Result exchange_capture_mode(int* mode) {
  std::swap(*mode, t_capture_mode);
  return enter("cuThreadExchangeStreamCaptureMode", false);
}
Result stream_query(void* stream) { return on_stream("cuStreamQuery", stream); }
Result stream_synchronize(void* stream) { return on_stream("cuStreamSynchronize", stream); }
Result stream_wait_event(void* stream, void* event, unsigned) {
  return known_event(event) ? on_stream("cuStreamWaitEvent", stream) : kInvalidHandle;
}
/// Of a CUstreamBatchMemOpParams what the adapter uses.
struct MemoryOperation {
  std::int32_t operation;  // 1 wait for 32 bits, 2 write 32, 4 wait for 64, 5 write 64
  DevicePointer address;
  std::uint64_t value;
  std::uint32_t flags;  // of a wait: 0 at least, 1 equal, 2 any bit
  DevicePointer alias;
  std::uint64_t rest;
};
static_assert(sizeof(MemoryOperation) == 48);

template <typename T>
Result do_memory_operation(const MemoryOperation& asked, bool write) {
  auto* const word = reinterpret_cast<T*>(asked.address);
  const auto value = static_cast<T>(asked.value);
  if (write) {
    if (asked.flags != 0) return kInvalidValue;
    return __atomic_store_n(word, value, __ATOMIC_RELEASE), kSuccess;
  }
  const T now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  const bool at_least = static_cast<T>(now - value) < T{1} << (8 * sizeof(T) - 1);
  const bool came = asked.flags == 0 ? at_least : asked.flags == 1 ? now == value : (now & value) != 0;
  return came ? kSuccess : kNeverEnds;  // nobody is left who could write it
}
Result stream_batch_mem_op(void* stream, unsigned count, const MemoryOperation* operations, unsigned flags) {
  if (const Result result = on_stream("cuStreamBatchMemOp", stream); result != kSuccess) return result;
  const std::lock_guard lock(g_mutex);
  if (flags != 0 || count > 255) return kInvalidValue;
  for (unsigned i = 0; i < count; ++i) {
    const MemoryOperation& asked = operations[i];
    if (memory_at(asked.address) == g_memory.end()) return kInvalidValue;
    const bool write = asked.operation == 2 || asked.operation == 5;
    const Result result = asked.operation <= 2 ? do_memory_operation<std::uint32_t>(asked, write)
                                               : do_memory_operation<std::uint64_t>(asked, write);
    if (result != kSuccess) return result;
  }
  return kSuccess;
}
Result memcpy_async(DevicePointer destination, DevicePointer source, std::size_t bytes, void* stream) {
  if (const Result result = on_stream("cuMemcpyAsync", stream); result != kSuccess) return result;
  {
    const std::lock_guard lock(g_mutex);
    if (const auto found = g_captures.find(stream); found != g_captures.end()) {
      found->second.push_back({.destination = destination, .source = source, .bytes = bytes});
      return kSuccess;
    }
  }
  std::memmove(reinterpret_cast<void*>(destination), reinterpret_cast<const void*>(source), bytes);
  return kSuccess;
}
Result launch_host_func(void* stream, void (*function)(void*), void* argument) {
  if (const Result result = on_stream("cuLaunchHostFunc", stream); result != kSuccess) return result;
  {
    const std::lock_guard lock(g_mutex);
    if (const auto found = g_captures.find(stream); found != g_captures.end()) {
      found->second.push_back({.function = function, .argument = argument});
      return kSuccess;
    }
  }
  if (function == nullptr) return kInvalidValue;
  function(argument);  // whatever was queued before is done
  return kSuccess;
}
// Graphs hold copies and functions of the host. The recorded one and the one made ready are the same object.
Result stream_begin_capture(void* stream, int) {
  if (const Result result = on_stream("cuStreamBeginCapture", stream); result != kSuccess) return result;
  const std::lock_guard lock(g_mutex);
  return g_captures.try_emplace(stream).second ? kSuccess : kInvalidValue;
}
Result stream_end_capture(void* stream, void** graph) {
  if (const Result result = on_stream("cuStreamEndCapture", stream); result != kSuccess) return result;
  const std::lock_guard lock(g_mutex);
  const auto found = g_captures.find(stream);
  if (found == g_captures.end()) return kInvalidValue;
  *graph = new std::vector<Recorded>(std::move(found->second));
  g_captures.erase(found);
  return kSuccess;
}
Result stream_is_capturing(void* stream, int* status) {
  if (const Result result = enter("cuStreamIsCapturing", false); result != kSuccess) return result;
  if (!known_stream(stream)) return kInvalidHandle;
  const std::lock_guard lock(g_mutex);
  *status = g_captures.contains(stream) ? 1 : 0;
  return kSuccess;
}
Result graph_instantiate(void** ready, void* graph, unsigned long long) {
  *ready = new std::vector<Recorded>(*static_cast<std::vector<Recorded>*>(graph));
  return enter("cuGraphInstantiateWithFlags");
}
Result graph_launch(void* graph, void* stream) {
  for (const Recorded& work : *static_cast<std::vector<Recorded>*>(graph)) {
    const Result result = work.function != nullptr ? launch_host_func(stream, work.function, work.argument)
                                                   : memcpy_async(work.destination, work.source, work.bytes, stream);
    if (result != kSuccess) return result;
  }
  return on_stream("cuGraphLaunch", stream);
}
Result graph_destroy(void* graph) {
  delete static_cast<std::vector<Recorded>*>(graph);
  return kSuccess;
}
Result memset_d8_async(DevicePointer destination, unsigned char value, std::size_t bytes, void* stream) {
  if (const Result result = on_stream("cuMemsetD8Async", stream); result != kSuccess) return result;
  std::memset(reinterpret_cast<void*>(destination), value, bytes);
  return kSuccess;
}

Result event_create(void** event, unsigned flags) {
  if (const Result result = enter("cuEventCreate"); result != kSuccess) return result;
  const std::lock_guard lock(g_mutex);
  auto* made = new Event;
  made->timing = (flags & 2u) == 0;
  g_events.insert(*event = made);
  return kSuccess;
}
Result event_destroy(void* event) {
  const std::lock_guard lock(g_mutex);
  if (g_events.erase(event) == 0) return kInvalidHandle;
  delete static_cast<Event*>(event);
  return enter("cuEventDestroy");
}
Result event_record(void* event, void* stream) {
  if (!known_event(event)) return kInvalidHandle;
  const std::lock_guard lock(g_mutex);
  static_cast<Event*>(event)->recorded = true;
  static_cast<Event*>(event)->time = std::chrono::steady_clock::now();
  return on_stream("cuEventRecord", stream);
}
Result event_query(void* event) { return known_event(event) ? enter("cuEventQuery") : kInvalidHandle; }
Result event_elapsed_time(float* milliseconds, void* from, void* to) {
  if (!known_event(from) || !known_event(to)) return kInvalidHandle;
  const auto& [start, end] = std::pair{*static_cast<Event*>(from), *static_cast<Event*>(to)};
  if (!start.timing || !end.timing || !start.recorded || !end.recorded) return kInvalidHandle;
  *milliseconds = std::chrono::duration<float, std::milli>(end.time - start.time).count();
  return enter("cuEventElapsedTime");
}

Result module_load_data(void** module, const void* image) {
  if (const Result result = enter("cuModuleLoadData"); result != kSuccess) return result;
  return std::memcmp(image, "fake", 4) == 0 ? (*module = &g_kernel, kSuccess) : kNoBinary;
}
Result module_unload(void*) { return enter("cuModuleUnload"); }
Result module_get_function(void** function, void* module, const char*) {
  return module == &g_kernel ? (*function = &g_kernel, kSuccess) : kNotFound;
}
Result launch_kernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void* stream,
                     void**, void**) {
  return function == &g_kernel ? on_stream("cuLaunchKernel", stream) : kInvalidHandle;
}
/// 2048 threads and 100 KB of shared memory on each multiprocessor.
Result occupancy(int* blocks, void* function, int threads, std::size_t shared_bytes) {
  if (function != &g_kernel || threads <= 0) return kInvalidValue;
  const std::size_t by_memory = shared_bytes == 0 ? 32 : (std::size_t{100} << 10) / shared_bytes;
  *blocks = static_cast<int>(std::min<std::size_t>({2048u / static_cast<unsigned>(threads), by_memory, 32}));
  return enter("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}
Result launch_cooperative(void* function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared_bytes, void* stream, void**) {
  int blocks = 0;
  const Result known = occupancy(&blocks, function, static_cast<int>(bx * by * bz), shared_bytes);
  if (known != kSuccess) return known;
  return x * y * z > 3u * static_cast<unsigned>(blocks) ? kTooLarge : on_stream("cuLaunchCooperativeKernel", stream);
}
Result func_load(void*) { return kSuccess; }
Result func_get_param_info(void*, std::size_t, std::size_t*, std::size_t*) { return kInvalidValue; }  // no arguments

const Symbol kSymbols[] = {
    symbol("cuInit", init, 2000),
    symbol("cuDriverGetVersion", driver_version, 2020),
    symbol("cuGetErrorName", error_name, 6000),
    symbol("cuGetErrorString", error_string, 6000),
    symbol("cuDeviceGetCount", device_get_count, 2000),
    symbol("cuDeviceGet", device_get, 2000),
    symbol("cuDeviceGetName", device_get_name, 2000),
    symbol("cuDeviceGetUuid", device_get_uuid, 11040),
    symbol("cuDeviceTotalMem", device_total_mem, 3020),
    symbol("cuDeviceGetAttribute", device_get_attribute, 2000),
    symbol("cuDeviceGetPCIBusId", device_get_pci_bus_id, 4010),
    symbol("cuDeviceCanAccessPeer", can_access_peer, 4000),
    symbol("cuDeviceGetP2PAttribute", get_p2p_attribute, 8000),
    symbol("cuDevicePrimaryCtxRetain", context_retain, 7000),
    symbol("cuDevicePrimaryCtxRelease", context_release, 11000),
    symbol("cuCtxGetCurrent", context_get_current, 4000),
    symbol("cuCtxSetCurrent", context_set_current, 4000),
    symbol("cuCtxPushCurrent", context_push, 4000),
    symbol("cuCtxPopCurrent", context_pop, 4000),
    symbol("cuMemAlloc", mem_alloc, 3020),
    symbol("cuMemFree", mem_free, 3020),
    symbol("cuMemAllocManaged", mem_alloc_managed, 6000),
    symbol("cuMemHostAlloc", mem_host_alloc, 2020),
    symbol("cuMemFreeHost", mem_free_host, 2000),
    symbol("cuMemHostRegister", mem_host_register, 6050),
    symbol("cuMemHostUnregister", mem_host_unregister, 4000),
    symbol("cuPointerGetAttribute", pointer_get_attribute, 4000),
    symbol("cuPointerGetAttributes", pointer_get_attributes, 7000),
    symbol("cuIpcGetMemHandle", ipc_get, 4010),
    symbol("cuIpcOpenMemHandle", ipc_open, 11000),
    symbol("cuIpcCloseMemHandle", ipc_close, 4010),
    symbol("cuCtxGetStreamPriorityRange", stream_priority_range, 5050),
    symbol("cuStreamCreateWithPriority", stream_create, 5050),
    symbol("cuStreamBeginCapture", stream_begin_capture, 10010),
    symbol("cuStreamIsCapturing", stream_is_capturing, 10000),
    symbol("cuStreamEndCapture", stream_end_capture, 10000),
    symbol("cuThreadExchangeStreamCaptureMode", exchange_capture_mode, 10010),
    symbol("cuGraphInstantiateWithFlags", graph_instantiate, 11040),
    symbol("cuGraphLaunch", graph_launch, 10000),
    symbol("cuGraphDestroy", graph_destroy, 10000),
    symbol("cuGraphExecDestroy", graph_destroy, 10000),
    symbol("cuStreamDestroy", stream_destroy, 4000),
    symbol("cuStreamQuery", stream_query, 2000),
    symbol("cuStreamSynchronize", stream_synchronize, 2000),
    symbol("cuStreamWaitEvent", stream_wait_event, 3020),
    symbol("cuStreamBatchMemOp", stream_batch_mem_op, 11070),
    symbol("cuLaunchHostFunc", launch_host_func, 10000),
    symbol("cuMemcpyAsync", memcpy_async, 4000),
    symbol("cuMemsetD8Async", memset_d8_async, 3020),
    symbol("cuEventCreate", event_create, 2000),
    symbol("cuEventDestroy", event_destroy, 4000),
    symbol("cuEventRecord", event_record, 2000),
    symbol("cuEventQuery", event_query, 2000),
    symbol("cuEventElapsedTime", event_elapsed_time, 2000),
    symbol("cuModuleLoadData", module_load_data, 2000),
    symbol("cuModuleUnload", module_unload, 2000),
    symbol("cuModuleGetFunction", module_get_function, 2000),
    symbol("cuLaunchKernel", launch_kernel, 4000),
    symbol("cuLaunchCooperativeKernel", launch_cooperative, 9000),
    symbol("cuOccupancyMaxActiveBlocksPerMultiprocessor", occupancy, 6050),
    symbol("cuFuncLoad", func_load, 12040),
    symbol("cuFuncGetParamInfo", func_get_param_info, 12040),
};

}  // namespace

extern "C" {

[[gnu::visibility("default")]] Result cuGetProcAddress_v2(const char* name, void** function, int version,
                                                          std::uint64_t flags, int* outcome) {
  *function = nullptr;
  *outcome = 1;  // not found
  if (flags != 1 || std::strcmp(name, variable("FAKE_CUDA_WITHOUT", "")) == 0) return kNotFound;
  const auto look = [&](std::span<const Symbol> symbols) -> const Symbol* {
    const auto at =
        std::ranges::find_if(symbols, [&](const Symbol& each) { return std::strcmp(each.name, name) == 0; });
    return at == symbols.end() ? nullptr : &*at;
  };
  const Symbol* found = look(kSymbols);
  if (found == nullptr) found = look(file_symbols());
  if (found == nullptr) return kNotFound;
  if (version < found->version) return *outcome = 2, kNotFound;  // the version is not sufficient
  *function = found->function;
  return *outcome = 0, kSuccess;
}

[[gnu::visibility("default")]] void fake_cuda_set_failure(const char* function, int code) {
  const std::lock_guard lock(g_mutex);
  g_failures.erase(function);
  if (code != 0) g_failures[function] = code;
}
[[gnu::visibility("default")]] std::uint64_t fake_cuda_calls(const char* function) {
  const std::lock_guard lock(g_mutex);
  return g_calls[function];
}
[[gnu::visibility("default")]] bool fake_cuda_capture(bool captures) {
  const std::lock_guard lock(g_mutex);
  g_captures_elsewhere = captures;
  return std::exchange(g_capture_broken, false);
}
[[gnu::visibility("default")]] int fake_cuda_retained(int device) {
  const std::lock_guard lock(g_mutex);
  return g_contexts[device].retained;
}
[[gnu::visibility("default")]] void* fake_cuda_foreign_alloc(std::uint64_t bytes, bool pool) {
  DevicePointer pointer = 0;
  return take(&pointer, bytes, {.type = 2, .pool = pool, .device = 0}) == kSuccess ? reinterpret_cast<void*>(pointer)
                                                                                   : nullptr;
}
[[gnu::visibility("default")]] void fake_cuda_foreign_free(void* pointer) {
  give_back(reinterpret_cast<DevicePointer>(pointer));
}
[[gnu::visibility("default")]] void fake_cuda_set_current(void* context) { t_current = context; }
[[gnu::visibility("default")]] void* fake_cuda_get_current() { return t_current; }

}  // extern "C"
