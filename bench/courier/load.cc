#include "load.h"

#include <dlfcn.h>

#include <array>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "brant/base/status.h"

extern "C" const unsigned char courier_bench_kernels_fatbin[];
extern "C" const std::size_t courier_bench_kernels_fatbin_bytes;

namespace brant::bench {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 30;
constexpr std::array kStreamArguments = {sizeof(void*), sizeof(void*), sizeof(unsigned long long)};
constexpr std::array kHoldArguments = {sizeof(unsigned long long)};
constexpr unsigned kBlocks = 132 * 16;
/// Two of these fill an SM's threads; its shared memory is full with one.
constexpr unsigned kHoldThreads = 1024;
constexpr unsigned kHoldBlocks = 132 * 2;

void nothing_on_host(const port::HostLaunch&) noexcept {}
void hold_on_host(const port::HostLaunch& launch) noexcept {
  std::this_thread::sleep_for(std::chrono::nanoseconds(launch.value<unsigned long long>(0)));
}

template <typename T>
T need(const Result<T>& result, const char* what) {
  if (!result.ok()) throw Error(result.status(), fmt::format("{}: {}", what, status_text(result.status())));
  return *result;
}
void need(Status status, const char* what) {
  if (status != Status::ok) throw Error(status, fmt::format("{}: {}", what, status_text(status)));
}

}  // namespace

DeviceCall device_synchronize() noexcept {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : reinterpret_cast<DeviceCall>(dlsym(driver, "cuCtxSynchronize"));
}

Load::Load(port::Device& device, MemoryKind kind) : device_(device) {
  const auto image = std::as_bytes(std::span(courier_bench_kernels_fatbin, courier_bench_kernels_fatbin_bytes));
  stream_kernel_ =
      need(device.kernels()->load({image, "brant_bench_stream", &nothing_on_host, kStreamArguments}), "a kernel");
  hold_kernel_ = need(device.kernels()->load({image, "brant_bench_hold", &hold_on_host, kHoldArguments}), "a kernel");
  stream_ = need(device.streams()->create_stream(port::StreamPriority::normal), "a stream");
  begin_ = need(device.streams()->create_event(true), "an event");
  end_ = need(device.streams()->create_event(true), "an event");
  const std::size_t bytes = kind == MemoryKind::emulated ? 4096 : kBytes;
  from_ = need(device.allocate(kind, bytes), "device memory");
  to_ = need(device.allocate(kind, bytes), "device memory");
  need(device.streams()->fill(from_, std::byte{0}, bytes, stream_), "a fill");
  wait();
}

Load::~Load() {
  device_.streams()->destroy_stream(stream_);
  device_.streams()->destroy_event(begin_);
  device_.streams()->destroy_event(end_);
  static_cast<void>(device_.free(from_));
  static_cast<void>(device_.free(to_));
}

double Load::stream_us(unsigned times) {
  unsigned long long count = kBytes / 16;
  void* arguments[] = {&to_, &from_, &count};
  const port::LaunchShape shape{.grid = {kBlocks, 1, 1}, .block = {512, 1, 1}};
  need(device_.streams()->record(begin_, stream_), "an event");
  for (unsigned i = 0; i < times; ++i) {
    need(device_.kernels()->launch(stream_kernel_, shape, arguments, stream_), "a launch");
  }
  need(device_.streams()->record(end_, stream_), "an event");
  wait();
  return need(device_.streams()->elapsed_us(begin_, end_), "an event");
}

void Load::hold(double us) {
  auto ns = static_cast<unsigned long long>(us * 1e3);
  void* arguments[] = {&ns};
  const port::LaunchShape shape{.grid = {kHoldBlocks, 1, 1}, .block = {kHoldThreads, 1, 1}};
  need(device_.kernels()->launch(hold_kernel_, shape, arguments, stream_), "a launch");
}

void Load::wait() { need(device_.streams()->synchronize(stream_), "a stream"); }

}  // namespace brant::bench
