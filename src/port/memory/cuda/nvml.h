#pragma once

#include <string>

namespace brant::port::memory {

/// NVIDIA's management library, opened when it is asked for. Its header is not among what brant is built with: these
/// are the functions of its stable C interface that we call, with enumerations as the 32-bit numbers they are. Any of
/// the optional ones may be null.
struct Nvml {
  struct Device;
  using Return = int;  ///< 0: success.

  struct PciInfo {
    char legacy_bus_id[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned device_id;
    unsigned subsystem_id;
    char bus_id[32];
  };
  static_assert(sizeof(PciInfo) == 68, "as nvmlPciInfo_t of nvmlDeviceGetNvLinkRemotePciInfo_v2");

  static constexpr Return kInvalidArgument = 2;
  static constexpr Return kNotSupported = 3;
  static constexpr int kLinkActive = 1;
  static constexpr int kRemoteSwitch = 2;
  static constexpr int kRemoteUnknown = 0xff;
  static constexpr int kCapsRead = 0;    ///< `p2p_status`: one GPU reads the other's memory.
  static constexpr int kCapsNvlink = 2;  ///< ... over NVLink.
  static constexpr unsigned kMigOn = 1;

  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*device_by_bus_id)(const char* bus_id, Device** device) = nullptr;
  /// Optional from here on.
  Return (*nvlink_state)(Device*, unsigned link, int* state) = nullptr;
  Return (*nvlink_remote_type)(Device*, unsigned link, int* type) = nullptr;
  Return (*nvlink_remote_pci)(Device*, unsigned link, PciInfo* remote) = nullptr;
  Return (*common_ancestor)(Device*, Device*, int* level) = nullptr;
  Return (*p2p_status)(Device*, Device*, int caps, int* status) = nullptr;
  Return (*mig_mode)(Device*, unsigned* current, unsigned* pending) = nullptr;
};

/// The library, or why there is none.
struct NvmlState {
  Nvml functions;
  bool usable = false;  ///< The functions are there and `init` succeeded: `shutdown` is due.
  std::string reason;   ///< In words, if not usable.
};

/// Opens and initialises it; the library stays loaded.
NvmlState open_nvml(const char* library = "libnvidia-ml.so.1");

/// "Not Found (6)".
std::string nvml_error_text(const Nvml& nvml, Nvml::Return result);

}  // namespace brant::port::memory
