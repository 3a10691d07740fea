#include "port/memory/cuda/nvml.h"

#include <fmt/format.h>

#include "base/dynamic_library.h"

namespace brant::port::memory {
NvmlState open_nvml(const char* library) {
  NvmlState state;
  const DynamicLibrary opened(library);
  if (!opened) {
    state.reason = "no NVML: " + opened.why_not();
    return state;
  }
  Nvml& nvml = state.functions;
  FunctionFinder functions(opened);
  functions.need(nvml.init, "nvmlInit_v2");
  functions.need(nvml.shutdown, "nvmlShutdown");
  functions.need(nvml.error_string, "nvmlErrorString");
  functions.need(nvml.device_by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
  opened.find(nvml.nvlink_state, "nvmlDeviceGetNvLinkState");
  opened.find(nvml.nvlink_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType");
  opened.find(nvml.nvlink_remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  opened.find(nvml.common_ancestor, "nvmlDeviceGetTopologyCommonAncestor");
  opened.find(nvml.p2p_status, "nvmlDeviceGetP2PStatus");
  opened.find(nvml.mig_mode, "nvmlDeviceGetMigMode");
  if (functions.missing() != nullptr) {
    state.reason = fmt::format("{} is no NVML that brant knows: it lacks {}", library, functions.missing());
    return state;
  }
  if (const Nvml::Return result = nvml.init(); result != 0) {
    state.reason = fmt::format("NVML does not start: {}", nvml_error_text(nvml, result));
    return state;
  }
  state.usable = true;
  return state;
}

std::string nvml_error_text(const Nvml& nvml, Nvml::Return result) {
  const char* text = nvml.error_string(result);
  return fmt::format("{} ({})", text == nullptr ? "unknown error" : text, result);
}

}  // namespace brant::port::memory
