#include <array>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "base/env.h"
#include "port/memory/adapters.h"
#include "port/memory/cuda/cuda_device.h"
#include "port/memory/cuda/cuda_driver.h"

namespace brant::port::memory {
namespace {

/// As nvidia-smi writes it. (The driver gives 16 bytes and not the prefix; for a slice of a GPU nvidia-smi says
/// "MIG-".)
std::string uuid_text(const CUuuid& uuid, bool mig) {
  std::string text = mig ? "MIG" : "GPU";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

CUresult summarize(const CudaDriver& driver, int ordinal, CudaDeviceSummary& summary) {
  CUdevice device = 0;
  CUuuid uuid = {};
  std::array<char, 256> name{};
  std::array<char, 32> bus{};
  for (const CUresult result :
       {driver.device_get(&device, ordinal),
        driver.device_get_name(name.data(), static_cast<int>(name.size()) - 1, device),
        driver.device_get_uuid(&uuid, device), driver.device_total_mem(&summary.memory_bytes, device),
        driver.device_get_attribute(&summary.compute_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
        driver.device_get_attribute(&summary.compute_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
        driver.device_get_pci_bus_id(bus.data(), static_cast<int>(bus.size()) - 1, device)}) {
    if (result != CUDA_SUCCESS) return result;
  }
  summary.ordinal = ordinal;
  summary.name = name.data();
  summary.mig = summary.name.find(" MIG ") != std::string::npos;
  summary.uuid = uuid_text(uuid, summary.mig);
  summary.pci_bus_id = bus.data();
  return CUDA_SUCCESS;
}

std::string no_device_reason() {
  const std::string_view visible = env("CUDA_VISIBLE_DEVICES");
  if (std::getenv("CUDA_VISIBLE_DEVICES") != nullptr) {
    return fmt::format("the driver works but shows no GPU: CUDA_VISIBLE_DEVICES is '{}'", visible);
  }
  return "the driver works but shows no GPU. If MIG is on, an instance has to be made first (nvidia-smi mig -cgi ... "
         "-C)";
}

}  // namespace

CudaProbe probe_cuda() {
  const CudaDriverState& state = cuda_driver_state();
  CudaProbe probe{.devices = {}, .reason = state.reason, .driver = state.version};
  if (!state.usable) return probe;
  int count = 0;
  CUresult result = state.driver.device_get_count(&count);
  for (int ordinal = 0; ordinal < count && result == CUDA_SUCCESS; ++ordinal) {
    CudaDeviceSummary summary;
    result = summarize(state.driver, ordinal, summary);
    if (result == CUDA_SUCCESS) probe.devices.push_back(std::move(summary));
  }
  if (result != CUDA_SUCCESS) {
    probe.reason = fmt::format("the driver does not describe its GPUs: {}", cuda_error_text(state.driver, result));
    probe.devices.clear();
  } else if (probe.devices.empty()) {
    probe.reason = no_device_reason();
  }
  return probe;
}

std::unique_ptr<Device> open_cuda_device(int ordinal) {
  const CudaProbe probe = probe_cuda();
  if (probe.devices.empty()) throw Error(Status::not_supported, fmt::format("no GPU: {}", probe.reason));
  for (const CudaDeviceSummary& summary : probe.devices) {
    if (summary.ordinal == ordinal)
      return std::make_unique<CudaDevice>(cuda_driver_state().driver, summary, probe.driver);
  }
  throw Error(Status::not_found,
              fmt::format("there is no GPU {}: this process sees 0 to {}", ordinal, probe.devices.size() - 1));
}

}  // namespace brant::port::memory
