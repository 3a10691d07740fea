#include "port/memory/devices.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/env.h"
#include "base/log.h"
#include "base/read_number.h"
#include "port/memory/adapters.h"
#include "port/memory/gpu_choice.h"

namespace brant::port {
namespace {

/// A number of microseconds or GB/s; 0 (off) if unset.
double cost_from(const char* name) {
  const std::string_view text = env(name);
  if (text.empty()) return 0;
  double value = 0;
  if (!read_number(text, value) || !(value >= 0) || value > 1e9) {
    throw Error(Status::invalid_argument, fmt::format("{}='{}' is not a number of at least 0", name, text));
  }
  return value;
}

std::unique_ptr<Device> open_emulated(const DeviceRequest& request) {
  memory::EmulatedOptions options;
  options.ordinal = request.ordinal >= 0 ? request.ordinal : request.local_rank;
  options.command_us = cost_from("BRANT_EMULATED_US");
  options.gigabytes_per_s = cost_from("BRANT_EMULATED_GB_S");
  options.files_only = env_bool("BRANT_EMULATED_FILES", false);
  return memory::open_emulated_device(options);
}

/// One GPU named, so not "0,1", not empty, not "all" (which some container tools write).
bool one_gpu_assigned() {
  const std::string_view visible = env("CUDA_VISIBLE_DEVICES");
  return !visible.empty() && visible != "all" && visible.find(',') == std::string_view::npos;
}

std::unique_ptr<Device> open_cuda(const DeviceRequest& request, const memory::CudaProbe& probe) {
  const memory::GpuScene scene{.gpus = probe.devices.size(),
                               .assigned = probe.devices.size() == 1 && one_gpu_assigned()};
  const int ordinal = memory::choose_gpu(request, scene);
  const bool shared = !scene.assigned && static_cast<std::size_t>(request.local_size) > scene.gpus;
  if (shared) log::warn("several processes share GPU {}: expect about 150 us per operation (time slicing)", ordinal);
  std::unique_ptr<Device> device = memory::open_cuda_device(ordinal);
  if (!device->capabilities().exports) {
    log::warn(
        "GPU {} ({}) is a slice of a GPU: its memory cannot be mapped by other processes, transfers between processes "
        "are "
        "staged through the host",
        ordinal, device->capabilities().name);
  }
  return device;
}

}  // namespace

std::vector<GpuSummary> list_gpus(std::string* reason) {
  const memory::CudaProbe probe = memory::probe_cuda();
  if (reason != nullptr) *reason = probe.devices.empty() ? probe.reason : std::string{};
  std::vector<GpuSummary> gpus;
  for (const memory::CudaDeviceSummary& device : probe.devices) {
    gpus.push_back({.ordinal = device.ordinal,
                    .name = device.name,
                    .uuid = device.uuid,
                    .pci_bus_id = device.pci_bus_id,
                    .memory_bytes = device.memory_bytes,
                    .compute_major = device.compute_major,
                    .compute_minor = device.compute_minor,
                    .mig = device.mig});
  }
  return gpus;
}

std::unique_ptr<Device> open_device(const DeviceRequest& request) {
  using Gpu = DeviceRequest::Gpu;
  if (request.gpu == Gpu::none) return memory::open_host_device();
  if (request.gpu == Gpu::emulated) return open_emulated(request);
  const memory::CudaProbe probe = memory::probe_cuda();
  if (!probe.devices.empty()) return open_cuda(request, probe);
  if (request.gpu == Gpu::cuda || request.ordinal >= 0) {
    throw Error(Status::not_supported, fmt::format("a GPU was asked for, but there is none: {}", probe.reason));
  }
  log::info("no GPU, the host is the device: {}", probe.reason);
  return memory::open_host_device();
}

}  // namespace brant::port
