#include "port/memory/cuda/nvml.h"

#include <dlfcn.h>

#include <fmt/format.h>

namespace brant::port::memory {
namespace {

class Symbols {
 public:
  explicit Symbols(void* library) noexcept : library_(library) {}

  template <typename Slot>
  void want(Slot& slot, const char* name) noexcept {
    slot = reinterpret_cast<Slot>(::dlsym(library_, name));
  }
  template <typename Slot>
  void need(Slot& slot, const char* name) noexcept {
    want(slot, name);
    if (slot == nullptr && missing_ == nullptr) missing_ = name;
  }
  [[nodiscard]] const char* missing() const noexcept { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

}  // namespace

NvmlState open_nvml(const char* library) {
  NvmlState state;
  void* opened = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* why = ::dlerror();
    state.reason = fmt::format("no NVML: {}", why == nullptr ? "the library cannot be opened" : why);
    return state;
  }
  Nvml& nvml = state.functions;
  Symbols symbols(opened);
  symbols.need(nvml.init, "nvmlInit_v2");
  symbols.need(nvml.shutdown, "nvmlShutdown");
  symbols.need(nvml.error_string, "nvmlErrorString");
  symbols.need(nvml.device_by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
  symbols.want(nvml.nvlink_state, "nvmlDeviceGetNvLinkState");
  symbols.want(nvml.nvlink_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType");
  symbols.want(nvml.nvlink_remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  symbols.want(nvml.common_ancestor, "nvmlDeviceGetTopologyCommonAncestor");
  symbols.want(nvml.p2p_status, "nvmlDeviceGetP2PStatus");
  symbols.want(nvml.mig_mode, "nvmlDeviceGetMigMode");
  if (symbols.missing() != nullptr) {
    state.reason = fmt::format("{} is no NVML that brant knows: it lacks {}", library, symbols.missing());
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
