#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "port/memory.h"

namespace brant::port {

/// Which device a process shall use. The place of the process among those of its host comes from the bootstrap.
struct DeviceRequest {
  enum class Gpu { automatic, none, emulated, cuda };

  Gpu gpu = Gpu::automatic;  ///< automatic: a GPU if there is one, else the host.
  int local_rank = 0;        ///< 0 to local_size - 1.
  int local_size = 1;        ///< Processes of this job on this host.
  bool share_gpu = false;    ///< Several processes may use one GPU.
  int ordinal = -1;          ///< This GPU and no other, as the process sees them; -1: chosen by local_rank.
};

/// A GPU of this host as this process sees it.
struct GpuSummary {
  int ordinal = -1;
  std::string name;
  std::string uuid;        ///< As nvidia-smi writes it; names the GPU in every process.
  std::string pci_bus_id;  ///< "0000:1b:00.0".
  std::size_t memory_bytes = 0;
  int compute_major = 0;
  int compute_minor = 0;
  bool mig = false;  ///< A slice of a GPU: works, but cannot share memory with other processes.
};

/// The GPUs this process may use; creates no context. `reason`, if given, says in words why the list is empty (else it
/// is empty). Initialises the driver, which must not happen before a fork whose child uses a GPU.
std::vector<GpuSummary> list_gpus(std::string* reason = nullptr);

/// Opens the device for this process. Each can also allocate `host` and `pinned`.
///
/// Throws Error: no GPU where one was demanded; more processes on this host than GPUs without `share_gpu`; no such
/// ordinal; a GPU that is there but fails. It never falls back in silence: `automatic` without a GPU gives the host
/// device and writes the reason to the log (level info). A process that CUDA_VISIBLE_DEVICES shows one GPU takes that
/// one.
///
/// The emulated device's cost model is set by BRANT_EMULATED_US (microseconds per command) and BRANT_EMULATED_GB_S;
/// with BRANT_EMULATED_FILES=1 its memory is shared as files alone.
std::unique_ptr<Device> open_device(const DeviceRequest& request);

}  // namespace brant::port
