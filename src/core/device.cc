#include "brant/core/device.h"

#include <fmt/format.h>

#include "brant/base/status.h"
#include "brant/core/kernel.h"
#include "brant/core/stream.h"
#include "port/memory.h"
#include "port/memory/devices.h"

namespace brant {
namespace {

/// Where there are none, an error that names the device and the cure.
port::Streams& streams_of(port::Device& device) {
  if (port::Streams* streams = device.streams(); streams != nullptr) return *streams;
  throw Error(Status::not_supported,
              fmt::format("the device of this process, '{}', has no streams: set BRANT_GPU=cuda on a machine with a "
                          "GPU, or BRANT_GPU=emulated for a device made of threads",
                          device.capabilities().name));
}

template <typename T>
T require(const Result<T>& made, const port::Device& device, const char* what) {
  if (made.ok()) return *made;
  throw Error(made.status(),
              fmt::format("{} on '{}': {}", what, device.capabilities().name, status_text(made.status())));
}

}  // namespace

std::vector<DeviceInfo> list_gpus(std::string* why_none) {
  std::vector<DeviceInfo> gpus;
  for (const port::GpuSummary& gpu : port::list_gpus(why_none)) {
    gpus.push_back({.kind = MemoryKind::cuda,
                    .ordinal = gpu.ordinal,
                    .name = gpu.name,
                    .id = gpu.uuid,
                    .memory_bytes = gpu.memory_bytes,
                    .architecture = 10 * gpu.compute_major + gpu.compute_minor,
                    .processors = 0,
                    .driver = {},
                    .streams = true,
                    .kernels = true,
                    .shares_memory = !gpu.mig});
  }
  return gpus;
}

MemoryKind Device::kind() const noexcept {
  const port::DeviceCapabilities& device = device_->capabilities();
  if (device.offers(MemoryKind::cuda)) return MemoryKind::cuda;
  if (device.offers(MemoryKind::emulated)) return MemoryKind::emulated;
  return MemoryKind::host;
}

DeviceInfo Device::info() const {
  const port::DeviceCapabilities& device = device_->capabilities();
  return {.kind = kind(),
          .ordinal = device.ordinal,
          .name = device.name,
          .id = device.id,
          .memory_bytes = device.memory_bytes,
          .architecture = device.architecture,
          .processors = device.processors,
          .driver = device.driver,
          .streams = device.streams,
          .kernels = device.kernels,
          .shares_memory = device.exports};
}

Stream Device::create_stream(StreamPriority priority) const {
  return {*device_, require(streams_of(*device_).create_stream(priority), *device_, "a stream could not be made"),
          true};
}

Stream Device::borrow_stream(void* native) const {
  static_cast<void>(streams_of(*device_));
  if (native == nullptr) {
    throw Error(Status::invalid_argument,
                "a stream that is null cannot be borrowed: CUDA's default stream has the name CU_STREAM_LEGACY, or "
                "CU_STREAM_PER_THREAD where the program is compiled for one default stream per thread");
  }
  return {*device_, static_cast<port::Stream*>(native), false};
}

Event Device::create_event() const {
  return {*device_, require(streams_of(*device_).create_event(false), *device_, "an event could not be made")};
}

Event Device::create_timing_event() const {
  return {*device_, require(streams_of(*device_).create_event(true), *device_, "an event could not be made")};
}

namespace detail {

port::Kernel* load_kernel(port::Device& device, const KernelSource& source) {
  const char* symbol = source.symbol == nullptr ? "(no name)" : source.symbol;
  port::Kernels* kernels = device.kernels();
  const Result<port::Kernel*> loaded = kernels == nullptr ? Status::not_supported : kernels->load(source);
  if (loaded) return *loaded;
  const char* cure = "";
  if (kernels == nullptr) {
    cure = ". It runs no kernels: set BRANT_GPU=cuda on a machine with a GPU, or BRANT_GPU=emulated";
  } else if (source.image.empty() && source.on_host == nullptr) {
    cure = ". There is neither an image nor a host version of it";
  } else if (source.image.empty()) {
    cure = ". Its image is empty: the program was built without nvcc; build it where nvcc is found";
  }
  throw Error(loaded.status(), fmt::format("the kernel {} could not be loaded on '{}': {}{}", symbol,
                                           device.capabilities().name, status_text(loaded.status()), cure));
}

Status launch_kernel(port::Device& device, port::Kernel* kernel, const LaunchShape& shape, StreamHandle stream,
                     void** arguments) noexcept {
  return device.kernels()->launch(kernel, shape, arguments, stream);
}

}  // namespace detail
}  // namespace brant
