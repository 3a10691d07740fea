#pragma once

#include <memory>
#include <string>
#include <vector>

#include "port/memory.h"
#include "port/memory/emulated_options.h"

/// What each adapter folder defines: how its device is opened, and for cuda what there is to open. `devices.h` chooses
/// among them; nobody else needs the adapters' own headers.
namespace brant::port::memory {

/// memory/host.
std::unique_ptr<Device> open_host_device();

/// memory/emulated.
std::unique_ptr<Device> open_emulated_device(const EmulatedOptions& options = {});

/// A GPU as its driver describes it, without a context on it.
struct CudaDeviceSummary {
  int ordinal = -1;
  std::string name;
  std::string uuid;        ///< "GPU-xxxxxxxx-xxxx-...", as nvidia-smi writes it.
  std::string pci_bus_id;  ///< "0000:1b:00.0".
  std::size_t memory_bytes = 0;
  int compute_major = 0;
  int compute_minor = 0;
  bool mig = false;  ///< A slice of a GPU: no peer mapping, no export to other processes.
};

/// What the CUDA driver offers here.
struct CudaProbe {
  std::vector<CudaDeviceSummary> devices;
  std::string reason;  ///< Why `devices` is empty, in words, with the cure where there is one.
  std::string driver;  ///< "CUDA 13.0 (driver 580.159)"; empty without a driver.
};

/// memory/cuda. Initialises the driver (once per process, some hundred ms on a GPU machine) and creates no context.
/// Never throws for what is missing or broken: that is what `reason` is for. Do not call it before a fork whose child
/// uses the GPU.
CudaProbe probe_cuda();

/// memory/cuda. Opens the primary context of one device. Throws Error (not_supported with the reason of the probe;
/// device_failed, no_memory).
std::unique_ptr<Device> open_cuda_device(int ordinal);

}  // namespace brant::port::memory
