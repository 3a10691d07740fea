// The topology of GPUs as two libraries of NVIDIA tell it, with stand-ins for their functions.
#include "port/memory/gpu_topology.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "port/memory/cuda/cuda_topology.h"

namespace brant::port::memory {
namespace {

constexpr int kRefused = 999;

/// What an NVLink leads to.
struct Remote {
  int type = Nvml::kRemoteUnknown;
  unsigned bus = 0;  ///< 0: cannot be located.
};

/// A host as the stand-ins describe it. Answers below 0 are failures.
struct Host {
  std::function<int(int from, int to)> access = [](int, int) { return 1; };
  std::function<int(int from, int to)> atomics = [](int, int) { return 0; };
  std::function<std::vector<Remote>(int gpu)> nvlinks = [](int) { return std::vector<Remote>(); };
  std::function<int(int from, int to)> level = [](int, int) { return 50; };
  std::function<int(int from, int to, int caps)> p2p = [](int, int, int) { return 0; };
  std::function<int(int gpu)> mig = [](int) { return -1; };
  std::function<bool(int gpu)> known_to_nvml = [](int) { return true; };
};
Host g_host;

constexpr unsigned bus_of(int gpu) { return 0x1bu + static_cast<unsigned>(gpu); }
int number_of(Nvml::Device* device) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(device)) - 1; }

CUresult told(int answer, int* value) {
  *value = answer;
  return answer < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CudaDriver fake_driver() {
  CudaDriver driver;
  driver.device_get = [](CUdevice* device, int ordinal) { return *device = ordinal + 100, CUDA_SUCCESS; };
  driver.get_error_name = [](CUresult, const char** text) { return *text = "CUDA_ERROR_OF_THE_FAKE", CUDA_SUCCESS; };
  driver.get_error_string = [](CUresult, const char** text) { return *text = "as told", CUDA_SUCCESS; };
  driver.device_can_access_peer = [](int* possible, CUdevice from, CUdevice to) {
    return told(g_host.access(from - 100, to - 100), possible);
  };
  driver.device_get_p2p_attribute = [](int* value, CUdevice_P2PAttribute which, CUdevice from, CUdevice to) {
    if (which == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED) return told(g_host.access(from - 100, to - 100), value);
    if (which == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)
      return told(g_host.atomics(from - 100, to - 100), value);
    return told(which == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 1 : 0, value);
  };
  return driver;
}

NvmlState fake_nvml() {
  NvmlState state;
  state.usable = true;
  Nvml& nvml = state.functions;
  nvml.error_string = [](Nvml::Return) { return "Refused"; };
  nvml.device_by_bus_id = [](const char* bus_id, Nvml::Device** device) {
    const int gpu = static_cast<int>(std::stoul(std::string(bus_id).substr(5, 2), nullptr, 16) - bus_of(0));
    *device = reinterpret_cast<Nvml::Device*>(static_cast<std::uintptr_t>(gpu) + 1);
    return g_host.known_to_nvml(gpu) ? 0 : kRefused;
  };
  nvml.nvlink_state = [](Nvml::Device* device, unsigned link, int* active) {
    const std::vector<Remote> links = g_host.nvlinks(number_of(device));
    if (link >= links.size() + 1) return Nvml::kInvalidArgument;
    *active = link < links.size() ? Nvml::kLinkActive : 0;  // the last one is there and not connected
    return 0;
  };
  nvml.nvlink_remote_type = [](Nvml::Device* device, unsigned link, int* type) {
    return *type = g_host.nvlinks(number_of(device)).at(link).type, 0;
  };
  nvml.nvlink_remote_pci = [](Nvml::Device* device, unsigned link, Nvml::PciInfo* remote) {
    remote->bus = g_host.nvlinks(number_of(device)).at(link).bus;
    return remote->bus == 0 ? kRefused : 0;
  };
  nvml.common_ancestor = [](Nvml::Device* from, Nvml::Device* to, int* level) {
    return *level = g_host.level(number_of(from), number_of(to)), 0;
  };
  nvml.p2p_status = [](Nvml::Device* from, Nvml::Device* to, int caps, int* status) {
    return *status = g_host.p2p(number_of(from), number_of(to), caps), 0;
  };
  nvml.mig_mode = [](Nvml::Device* device, unsigned* current, unsigned* pending) {
    const int mode = g_host.mig(number_of(device));
    *current = *pending = static_cast<unsigned>(mode);
    return mode < 0 ? Nvml::kNotSupported : 0;
  };
  return state;
}

std::vector<CudaDeviceSummary> devices(int count) {
  std::vector<CudaDeviceSummary> all(static_cast<std::size_t>(count));
  for (int gpu = 0; gpu < count; ++gpu) {
    CudaDeviceSummary& device = all[static_cast<std::size_t>(gpu)];
    device.ordinal = gpu;
    device.pci_bus_id = fmt::format("0000:{:02x}:00.0", bus_of(gpu));
  }
  return all;
}

Remote to_gpu(int gpu) { return {0, bus_of(gpu)}; }
constexpr Remote kSwitch{Nvml::kRemoteSwitch, 7};

class Topology : public testing::Test {
 protected:
  void SetUp() override { g_host = Host{}; }
  static GpuTopology describe(int gpus) { return describe_topology(devices(gpus), fake_driver(), fake_nvml()); }
};

TEST_F(Topology, a_lone_gpu_has_no_links) {
  const GpuTopology topology = describe(1);
  EXPECT_TRUE(topology.links.empty());
  EXPECT_TRUE(topology.gaps.empty());
  EXPECT_TRUE(describe(0).links.empty());
}

TEST_F(Topology, links_between_two_gpus_are_counted_from_both_ends) {
  g_host.nvlinks = [](int gpu) { return std::vector(4, to_gpu(1 - gpu)); };
  g_host.atomics = [](int, int) { return 1; };
  const GpuTopology topology = describe(2);
  ASSERT_EQ(topology.links.size(), 2u);
  for (const GpuLink& link : topology.links) {
    EXPECT_EQ(link.from, 1 - link.to);
    EXPECT_EQ(link.nvlinks, 4);
    EXPECT_FALSE(link.through_switch);
    EXPECT_EQ(link.access, true);
    EXPECT_EQ(link.atomics, true);
    EXPECT_EQ(link.arrays, false);
    EXPECT_EQ(link.performance_rank, 1);
    EXPECT_TRUE(link.reason.empty());
    EXPECT_EQ(link_name(link), "NV4");
  }
  EXPECT_TRUE(topology.gaps.empty());
}

TEST_F(Topology, eight_gpus_behind_switches_all_share_their_links) {
  g_host.nvlinks = [](int gpu) { return std::vector(gpu == 5 ? 17 : 18, kSwitch); };
  const GpuTopology topology = describe(8);
  ASSERT_EQ(topology.links.size(), 56u);
  EXPECT_TRUE(std::is_sorted(topology.links.begin(), topology.links.end(), [](const GpuLink& a, const GpuLink& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  }));
  for (const GpuLink& link : topology.links) {
    EXPECT_TRUE(link.through_switch);
    EXPECT_EQ(link_name(link), link.from == 5 || link.to == 5 ? "NV17" : "NV18") << link.from << " " << link.to;
  }
}

TEST_F(Topology, a_mesh_of_four_names_each_pair_by_what_joins_it) {
  g_host.nvlinks = [](int gpu) -> std::vector<Remote> {
    if (gpu == 0) return {to_gpu(1), to_gpu(1), to_gpu(2)};
    if (gpu == 1) return {to_gpu(0), to_gpu(0)};
    if (gpu == 2) return {to_gpu(0)};
    return {};
  };
  g_host.level = [](int from, int to) { return from + to == 3 ? 30 : from + to == 4 ? 20 : 10; };
  const GpuTopology topology = describe(4);
  EXPECT_EQ(link_name(*topology.find(0, 1)), "NV2");
  EXPECT_EQ(link_name(*topology.find(2, 0)), "NV1");
  EXPECT_EQ(link_name(*topology.find(0, 3)), "PHB");
  EXPECT_EQ(link_name(*topology.find(3, 1)), "PXB");
  EXPECT_EQ(link_name(*topology.find(2, 3)), "PIX");
  EXPECT_EQ(topology.find(2, 2), nullptr);
  EXPECT_EQ(topology.find(0, 4), nullptr);
}

TEST_F(Topology, gpus_on_switches_that_do_not_meet_go_over_pcie) {
  g_host.nvlinks = [](int) { return std::vector(6, kSwitch); };
  g_host.p2p = [](int from, int to, int caps) { return caps == Nvml::kCapsNvlink && from / 2 != to / 2 ? 5 : 0; };
  const GpuTopology topology = describe(4);
  EXPECT_EQ(link_name(*topology.find(0, 1)), "NV6");
  EXPECT_EQ(link_name(*topology.find(1, 2)), "SYS");
  EXPECT_EQ(topology.find(1, 2)->nvlinks, 0);
  EXPECT_FALSE(topology.find(1, 2)->through_switch);
}

TEST_F(Topology, active_links_to_nothing_with_a_name_lead_to_a_hidden_switch) {
  g_host.nvlinks = [](int) { return std::vector(18, Remote{}); };
  EXPECT_EQ(link_name(*describe(2).find(0, 1)), "NV18");
  // A GPU that this process may not see is no switch.
  g_host.nvlinks = [](int) { return std::vector(4, to_gpu(9)); };
  EXPECT_EQ(describe(2).find(0, 1)->nvlinks, 0);
  // Nor is a processor.
  g_host.nvlinks = [](int) { return std::vector(4, Remote{1, 0}); };
  EXPECT_EQ(describe(2).find(0, 1)->nvlinks, 0);
}

TEST_F(Topology, without_nvml_what_cuda_says_remains) {
  NvmlState none;
  none.reason = "no NVML: not found";
  const GpuTopology topology = describe_topology(devices(2), fake_driver(), none);
  ASSERT_EQ(topology.links.size(), 2u);
  EXPECT_EQ(topology.links[0].access, true);
  EXPECT_EQ(topology.links[0].nvlinks, std::nullopt);
  EXPECT_EQ(link_name(topology.links[0]), "?");
  EXPECT_EQ(topology.mig, std::vector<std::optional<bool>>(2));
  ASSERT_EQ(topology.gaps.size(), 1u);
  EXPECT_NE(topology.gaps[0].find("no NVML: not found"), std::string::npos);
}

TEST_F(Topology, a_refused_question_is_unknown_and_hurts_no_other) {
  g_host.access = [](int from, int to) { return from == 1 && to == 2 ? -1 : 1; };
  g_host.atomics = [](int, int) { return -1; };
  const GpuTopology topology = describe(4);
  EXPECT_EQ(topology.find(1, 2)->access, std::nullopt);
  EXPECT_NE(topology.find(1, 2)->reason.find("CUDA_ERROR_OF_THE_FAKE"), std::string::npos);
  EXPECT_EQ(topology.find(2, 1)->access, true);
  EXPECT_EQ(topology.find(2, 1)->atomics, std::nullopt);
  EXPECT_EQ(topology.gaps.size(), 1u) << "said once, not for every pair";
}

TEST_F(Topology, a_gpu_that_nvml_does_not_show_is_named) {
  g_host.nvlinks = [](int gpu) { return std::vector(2, to_gpu(gpu == 0 ? 2 : 0)); };
  g_host.known_to_nvml = [](int gpu) { return gpu != 1; };
  const GpuTopology topology = describe(3);
  EXPECT_EQ(link_name(*topology.find(0, 2)), "NV2");
  EXPECT_EQ(link_name(*topology.find(0, 1)), "?");
  ASSERT_EQ(topology.gaps.size(), 1u);
  EXPECT_NE(topology.gaps[0].find("GPU 1 (0000:1c:00.0): Refused (999)"), std::string::npos) << topology.gaps[0];
}

TEST_F(Topology, mig_is_the_reason_that_nothing_is_mapped) {
  g_host.access = [](int, int) { return 0; };
  g_host.mig = [](int gpu) { return gpu == 1 ? 1 : 0; };
  GpuTopology topology = describe(3);
  EXPECT_EQ(topology.mig, (std::vector<std::optional<bool>>{false, true, false}));
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0), std::pair(2, 1)})
    EXPECT_NE(topology.find(from, to)->reason.find("MIG is on for GPU 1"), std::string::npos);
  EXPECT_EQ(topology.find(0, 2)->reason, "the driver does not say why");
  // A slice is one, whether NVML tells or not.
  std::vector<CudaDeviceSummary> slices = devices(2);
  slices[0].mig = true;
  topology = describe_topology(slices, fake_driver(), NvmlState{});
  EXPECT_NE(topology.find(1, 0)->reason.find("MIG is on for GPU 0"), std::string::npos);
}

TEST_F(Topology, what_nvml_says_about_refused_access_is_passed_on) {
  g_host.access = [](int, int) { return 0; };
  g_host.p2p = [](int from, int, int caps) { return caps == Nvml::kCapsRead ? (from == 0 ? 1 : 4) : 0; };
  const GpuTopology topology = describe(2);
  EXPECT_EQ(topology.find(0, 1)->access, false);
  EXPECT_NE(topology.find(0, 1)->reason.find("chipset"), std::string::npos);
  EXPECT_NE(topology.find(1, 0)->reason.find("setting"), std::string::npos);
}

TEST_F(Topology, functions_that_old_libraries_lack_are_not_called) {
  CudaDriver driver = fake_driver();
  driver.device_can_access_peer = nullptr;
  NvmlState nvml = fake_nvml();
  nvml.functions.nvlink_state = nullptr;
  nvml.functions.common_ancestor = nullptr;
  nvml.functions.p2p_status = nullptr;
  nvml.functions.mig_mode = nullptr;
  const GpuTopology topology = describe_topology(devices(2), driver, nvml);
  EXPECT_EQ(topology.find(0, 1)->access, true) << "by the attribute";
  EXPECT_EQ(topology.find(0, 1)->nvlinks, std::nullopt);
  EXPECT_EQ(topology.gaps, std::vector<std::string>{"this NVML does not tell of NVLinks"});
  driver.device_get_p2p_attribute = nullptr;
  EXPECT_EQ(describe_topology(devices(2), driver, nvml).find(0, 1)->reason, "this driver cannot be asked");
}

TEST_F(Topology, an_address_that_is_none_is_a_gap) {
  std::vector<CudaDeviceSummary> odd = devices(2);
  odd[1].pci_bus_id = "somewhere";
  const GpuTopology topology = describe_topology(odd, fake_driver(), fake_nvml());
  ASSERT_EQ(topology.gaps.size(), 1u);
  EXPECT_NE(topology.gaps[0].find("'somewhere'"), std::string::npos);
  EXPECT_EQ(topology.find(0, 1)->access, true);
}

TEST(NvmlLibrary, that_is_missing_or_another_one_is_a_reason) {
  const NvmlState missing = open_nvml("libbrant-no-such-library.so");
  EXPECT_FALSE(missing.usable);
  EXPECT_NE(missing.reason.find("libbrant-no-such-library.so"), std::string::npos) << missing.reason;
  const NvmlState other = open_nvml("libm.so.6");
  EXPECT_FALSE(other.usable);
  EXPECT_NE(other.reason.find("lacks nvmlInit_v2"), std::string::npos) << other.reason;
}

}  // namespace
}  // namespace brant::port::memory
