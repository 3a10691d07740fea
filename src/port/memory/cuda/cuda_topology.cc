#include "port/memory/cuda/cuda_topology.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include <fmt/format.h>

namespace brant::port::memory {
namespace {

constexpr unsigned kLinksMax = 36;  // H100 to B200 have 18

struct PciAddress {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  bool operator==(const PciAddress&) const noexcept = default;
};

/// A GPU as both libraries know it.
struct Gpu {
  int ordinal = -1;
  bool slice = false;
  CUdevice cuda = 0;
  PciAddress address;
  Nvml::Device* nvml = nullptr;
  std::vector<PciAddress> direct;  ///< The other ends of its active NVLinks, switches apart.
  int switched = 0;                ///< Active NVLinks to switches.
};

/// Of the NVML levels; there is room between them for those of newer versions.
PcieWay way_of(int level) noexcept {
  if (level < 0) return PcieWay::unknown;
  if (level < 10) return PcieWay::board;
  if (level < 20) return PcieWay::bridge;
  if (level < 30) return PcieWay::bridges;
  if (level < 40) return PcieWay::host_bridge;
  return level < 50 ? PcieWay::node : PcieWay::system;
}

const char* p2p_refusal(int status) noexcept {
  switch (status) {
    case 1: return "the chipset does not support it";
    case 2: return "the GPU does not support it";
    case 3: return "the PCIe topology between them does not support it";
    case 4: return "a setting of the driver's module switches it off";
    case 5: return "it is not supported here";
    default: return "the driver does not say why";
  }
}

class Describer {
 public:
  Describer(const CudaDriver& driver, const NvmlState& nvml) noexcept : driver_(driver), nvml_(nvml.functions) {
    if (!nvml.usable) gap(fmt::format("{}: NVLinks and the way over PCIe are unknown", nvml.reason));
    with_nvml_ = nvml.usable;
  }

  GpuTopology describe(const std::vector<CudaDeviceSummary>& devices) {
    for (const CudaDeviceSummary& device : devices) add(device);
    for (const Gpu& from : gpus_) {
      for (const Gpu& to : gpus_) {
        if (&from != &to) topology_.links.push_back(link(from, to));
      }
    }
    return std::move(topology_);
  }

 private:
  void gap(std::string text) {
    if (std::find(topology_.gaps.begin(), topology_.gaps.end(), text) == topology_.gaps.end())
      topology_.gaps.push_back(std::move(text));
  }

  void add(const CudaDeviceSummary& device) {
    Gpu& gpu = gpus_.emplace_back();
    gpu.ordinal = device.ordinal;
    gpu.slice = device.mig;
    topology_.mig.emplace_back(device.mig ? std::optional(true) : std::nullopt);
    if (const CUresult result = driver_.device_get(&gpu.cuda, device.ordinal); result != CUDA_SUCCESS)
      gap(fmt::format("GPU {}: {}", device.ordinal, cuda_error_text(driver_, result)));
    PciAddress& address = gpu.address;
    if (!with_nvml_) return;
    if (std::sscanf(device.pci_bus_id.c_str(), "%x:%x:%x", &address.domain, &address.bus, &address.device) != 3) {
      gap(fmt::format("GPU {}: '{}' is no PCI address, NVML cannot be asked about it", device.ordinal,
                      device.pci_bus_id));
      return;
    }
    if (const Nvml::Return result = nvml_.device_by_bus_id(device.pci_bus_id.c_str(), &gpu.nvml); result != 0) {
      gpu.nvml = nullptr;
      gap(fmt::format("NVML does not show GPU {} ({}): {}", device.ordinal, device.pci_bus_id,
                      nvml_error_text(nvml_, result)));
      return;
    }
    ask_mig(gpu);
    ask_nvlinks(gpu);
  }

  void ask_mig(const Gpu& gpu) {
    unsigned current = 0, pending = 0;
    // GPUs that cannot be sliced refuse the question.
    if (nvml_.mig_mode == nullptr || nvml_.mig_mode(gpu.nvml, &current, &pending) != 0) return;
    topology_.mig.back() = gpu.slice || current == Nvml::kMigOn;
  }

  void ask_nvlinks(Gpu& gpu) {
    if (nvml_.nvlink_state == nullptr) {
      gap("this NVML does not tell of NVLinks");
      return;
    }
    for (unsigned number = 0; number < kLinksMax; ++number) {
      int state = 0;
      const Nvml::Return result = nvml_.nvlink_state(gpu.nvml, number, &state);
      // Beyond the last link, and on GPUs that have none.
      if (result == Nvml::kInvalidArgument || result == Nvml::kNotSupported) continue;
      if (result != 0) {
        gap(fmt::format("GPU {}: the state of an NVLink is unknown: {}", gpu.ordinal, nvml_error_text(nvml_, result)));
      } else if (state == Nvml::kLinkActive) {
        add_nvlink(gpu, number);
      }
    }
  }

  void add_nvlink(Gpu& gpu, unsigned number) {
    int type = -1;
    if (nvml_.nvlink_remote_type == nullptr || nvml_.nvlink_remote_type(gpu.nvml, number, &type) != 0) type = -1;
    Nvml::PciInfo remote = {};
    const bool located = nvml_.nvlink_remote_pci != nullptr && nvml_.nvlink_remote_pci(gpu.nvml, number, &remote) == 0;
    // A virtual machine may hide its switches: an active link to nothing that can be named leads to one.
    const bool nameless = (type < 0 || type == Nvml::kRemoteUnknown) && !located;
    if (type == Nvml::kRemoteSwitch || nameless) {
      ++gpu.switched;
    } else if (located) {
      gpu.direct.push_back({remote.domain, remote.bus, remote.device});
    }
  }

  GpuLink link(const Gpu& from, const Gpu& to) {
    GpuLink link;
    link.from = from.ordinal;
    link.to = to.ordinal;
    if (from.nvml != nullptr && to.nvml != nullptr) {
      count_nvlinks(from, to, link);
      int level = -1;
      if (nvml_.common_ancestor != nullptr && nvml_.common_ancestor(from.nvml, to.nvml, &level) == 0)
        link.pcie = way_of(level);
    }
    ask_access(from, to, link);
    link.atomics = flag(attribute(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, from, to));
    link.arrays = flag(attribute(CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED, from, to));
    link.performance_rank = attribute(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, from, to);
    return link;
  }

  void count_nvlinks(const Gpu& from, const Gpu& to, GpuLink& link) const {
    if (nvml_.nvlink_state == nullptr) return;
    link.nvlinks = static_cast<int>(std::count(from.direct.begin(), from.direct.end(), to.address));
    if (*link.nvlinks > 0) return;
    const int shared = std::min(from.switched, to.switched);
    int status = 0;
    // Two GPUs may hang on different switches.
    const bool denied = nvml_.p2p_status != nullptr &&
                        nvml_.p2p_status(from.nvml, to.nvml, Nvml::kCapsNvlink, &status) == 0 && status != 0;
    if (shared == 0 || denied) return;
    link.nvlinks = shared;
    link.through_switch = true;
  }

  void ask_access(const Gpu& from, const Gpu& to, GpuLink& link) {
    int possible = 0;
    if (driver_.device_can_access_peer != nullptr) {
      const CUresult result = driver_.device_can_access_peer(&possible, from.cuda, to.cuda);
      if (result == CUDA_SUCCESS) link.access = possible != 0;
      if (result != CUDA_SUCCESS) link.reason = "the driver does not answer: " + cuda_error_text(driver_, result);
    } else {
      link.access = flag(attribute(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, from, to));
      if (!link.access) link.reason = "this driver cannot be asked";
    }
    if (link.access == false) link.reason = refusal(from, to);
  }

  std::string refusal(const Gpu& from, const Gpu& to) const {
    for (const Gpu* gpu : {&from, &to}) {
      if (topology_.mig[static_cast<std::size_t>(gpu - gpus_.data())] == true)
        return fmt::format("MIG is on for GPU {}: its slices map no other memory, and none maps theirs", gpu->ordinal);
    }
    int status = 0;
    const bool told = from.nvml != nullptr && to.nvml != nullptr && nvml_.p2p_status != nullptr &&
                      nvml_.p2p_status(from.nvml, to.nvml, Nvml::kCapsRead, &status) == 0;
    return p2p_refusal(told ? status : 0);
  }

  std::optional<int> attribute(CUdevice_P2PAttribute which, const Gpu& from, const Gpu& to) {
    if (driver_.device_get_p2p_attribute == nullptr) return std::nullopt;
    int value = 0;
    const CUresult result = driver_.device_get_p2p_attribute(&value, which, from.cuda, to.cuda);
    if (result == CUDA_SUCCESS) return value;
    gap(fmt::format("the driver does not tell all of the links between GPUs: {}", cuda_error_text(driver_, result)));
    return std::nullopt;
  }

  static std::optional<bool> flag(std::optional<int> value) noexcept {
    return value ? std::optional(*value != 0) : std::nullopt;
  }

  const CudaDriver& driver_;
  const Nvml& nvml_;
  bool with_nvml_ = false;
  std::vector<Gpu> gpus_;
  GpuTopology topology_;
};

}  // namespace

GpuTopology describe_topology(const std::vector<CudaDeviceSummary>& devices, const CudaDriver& driver,
                              const NvmlState& nvml) {
  return Describer(driver, nvml).describe(devices);
}

GpuTopology probe_gpu_topology(const CudaProbe& probe) {
  if (probe.devices.empty()) return {};
  const NvmlState nvml = open_nvml();
  GpuTopology topology = describe_topology(probe.devices, cuda_driver_state().driver, nvml);
  if (nvml.usable) static_cast<void>(nvml.functions.shutdown());
  return topology;
}

}  // namespace brant::port::memory
