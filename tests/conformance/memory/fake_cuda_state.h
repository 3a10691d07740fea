#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the parts of the stand-in for NVIDIA's driver share (fake_cuda_driver.cc).
namespace brant::test::fake_cuda {

using Result = int;  // CUresult
using DevicePointer = unsigned long long;
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kInvalidDevice = 101;
inline constexpr Result kInvalidContext = 201;
inline constexpr Result kNoBinary = 209;
inline constexpr Result kInvalidHandle = 400;
inline constexpr Result kNotFound = 500;
inline constexpr Result kNeverEnds = 702;
inline constexpr Result kAlreadyRegistered = 712;
inline constexpr Result kNotRegistered = 713;
inline constexpr Result kTooLarge = 720;

inline constexpr std::size_t kDeviceBytes = std::size_t{1} << 34;

struct Memory {
  std::size_t bytes = 0;
  unsigned type = 0;  // 1 host, 2 device
  bool managed = false;
  bool registered = false;
  bool pool = false;
  void* of_pool = nullptr;  // that was made as such; null: another one
  bool imported = false;
  int fd = -1;
  int device = -1;
  unsigned long long id = 0;
  std::pair<int, int> place{-1, -1};  // of a pool's memory that was imported: pid and file of its owner
  std::uintptr_t reserved = 0;        // with others; 0: it stands alone
  std::size_t reserved_bytes = 0;
};

struct Context {
  int device = 0;
  int retained = 0;
};

struct Event {
  bool timing = false;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
};

struct Handle {  // a CUipcMemHandle
  std::int32_t pid;
  std::int32_t fd;
  std::uint64_t bytes;
  std::uint64_t inode;
  char rest[40];
};
static_assert(sizeof(Handle) == 64);

inline std::recursive_mutex g_mutex;  // protects what follows
inline std::map<std::uintptr_t, Memory> g_memory;
inline std::map<std::string, int> g_failures;
inline std::map<std::string, std::uint64_t> g_calls;
inline std::set<void*> g_streams;
inline std::set<void*> g_events;
/// A copy, or a call of a function of the host.
struct Recorded {
  DevicePointer destination = 0;
  DevicePointer source = 0;
  std::size_t bytes = 0;
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
};
inline std::map<void*, std::vector<Recorded>> g_captures;  // streams that record
inline unsigned long long g_last_id = 0;
inline Context g_contexts[8];
inline thread_local void* t_current = nullptr;
inline char g_kernel = 0;  // stands for the module and its function

inline const char* variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}
inline int device_count() { return static_cast<int>(std::strtol(variable("FAKE_CUDA_DEVICES", "2"), nullptr, 10)); }

/// Counts the call and says whether it shall fail. `needs_context` is what the real driver demands.
/// A capture of mode "global" somewhere in the process, and whether something that it forbids has ended it. The mode of
/// each thread is as in the driver: 0 global, 1 of the thread, 2 relaxed.
inline bool g_captures_elsewhere = false;
inline bool g_capture_broken = false;
inline thread_local int t_capture_mode = 0;
constexpr Result kCaptureUnsupported = 900;

inline bool forbidden_in_captures(std::string_view name) {
  for (const std::string_view each : {"cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuMemHostRegister", "cuEventQuery",
                                      "cuStreamQuery", "cuStreamSynchronize", "cuIpcOpenMemHandle"}) {
    if (name == each) return true;
  }
  return false;
}

inline Result enter(const char* name, bool needs_context = true) {
  const std::lock_guard lock(g_mutex);
  ++g_calls[name];
  if (g_captures_elsewhere && t_capture_mode != 2 && forbidden_in_captures(name)) {
    g_capture_broken = true;
    return kCaptureUnsupported;
  }
  const auto failure = g_failures.find(name);
  if (failure != g_failures.end()) return failure->second;
  return needs_context && t_current == nullptr ? kInvalidContext : kSuccess;
}

inline std::map<std::uintptr_t, Memory>::iterator memory_at(DevicePointer pointer) {
  auto after = g_memory.upper_bound(pointer);
  if (after == g_memory.begin()) return g_memory.end();
  const auto found = std::prev(after);
  return pointer - found->first < found->second.bytes ? found : g_memory.end();
}

inline std::size_t mapped_bytes(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

inline Result take(DevicePointer* pointer, std::size_t bytes, Memory memory) {
  const std::lock_guard lock(g_mutex);
  if (bytes == 0) return kInvalidValue;
  if (bytes > kDeviceBytes) return kOutOfMemory;
  memory.fd = ::memfd_create("fake-cuda", MFD_CLOEXEC);
  if (memory.fd < 0 || ::ftruncate(memory.fd, static_cast<off_t>(mapped_bytes(bytes))) != 0) return kOutOfMemory;
  void* base = ::mmap(nullptr, mapped_bytes(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
  if (base == MAP_FAILED) return kOutOfMemory;
  memory.bytes = bytes;
  memory.id = ++g_last_id;
  *pointer = reinterpret_cast<DevicePointer>(base);
  g_memory[reinterpret_cast<std::uintptr_t>(base)] = memory;
  return kSuccess;
}

inline Result give_back(DevicePointer pointer) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_memory.find(pointer);
  if (found == g_memory.end() || found->second.registered) return kInvalidValue;
  ::munmap(reinterpret_cast<void*>(pointer), mapped_bytes(found->second.bytes));
  ::close(found->second.fd);
  g_memory.erase(found);
  return kSuccess;
}

inline bool known_stream(void* stream) {
  const std::lock_guard lock(g_mutex);
  return g_streams.contains(stream);
}
inline bool known_event(void* event) {
  const std::lock_guard lock(g_mutex);
  return g_events.contains(event);
}

/// By name and the version in which the function got its signature: asking for an older one must not find it.
struct Symbol {
  const char* name;
  void* function;
  int version;
};

template <typename Function>
Symbol symbol(const char* name, Function* function, int version) noexcept {
  return {name, reinterpret_cast<void*>(function), version};
}

/// Memory as files (fake_cuda_files.cc).
std::span<const Symbol> file_symbols();

}  // namespace brant::test::fake_cuda
