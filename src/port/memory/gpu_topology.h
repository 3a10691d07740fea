#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "port/memory/adapters.h"

namespace brant::port::memory {

/// What lies between two GPUs on their way over PCIe, nearest first.
enum class PcieWay { unknown, board, bridge, bridges, host_bridge, node, system };

/// How one GPU reaches another of this host. What the driver does not tell is empty.
struct GpuLink {
  int from = -1;  ///< Ordinals, as this process sees the GPUs.
  int to = -1;
  std::optional<int> nvlinks;           ///< Active ones that join the two.
  bool through_switch = false;          ///< They lead to NVLink switches, which all GPUs behind them share.
  PcieWay pcie = PcieWay::unknown;      ///< Used where there are no NVLinks.
  std::optional<bool> access;           ///< `from` can map and use the memory of `to`.
  std::optional<bool> atomics;          ///< Every atomic operation works on that memory natively.
  std::optional<bool> arrays;           ///< CUDA arrays can be used too.
  std::optional<int> performance_rank;  ///< Of the links here: 0 is the fastest.
  std::string reason;                   ///< Why there is no access, or why that is unknown.
};

/// The GPUs of this host among each other.
struct GpuTopology {
  std::vector<GpuLink> links;            ///< Every ordered pair, by `from`, then `to`.
  std::vector<std::optional<bool>> mig;  ///< By ordinal: MIG is switched on.
  std::vector<std::string> gaps;         ///< What could not be found out, and why; in words.

  /// The link of a pair, null for the same GPU and for ordinals that are not there.
  [[nodiscard]] const GpuLink* find(int from, int to) const noexcept;
};

/// As `nvidia-smi topo -m` names links: "NV18", or "PIX", "PXB", "PHB", "NODE", "SYS" for the way over PCIe; "?" for
/// unknown.
std::string link_name(const GpuLink& link);

/// "PIX"; "?" for unknown.
std::string_view pcie_name(PcieWay way) noexcept;

/// Asks the CUDA driver and NVML (loaded here, if it is there) about all pairs of the probe's devices. Creates no
/// context. Never throws for what is missing or refused: that is what `gaps` and `reason` are for. Tens of
/// milliseconds.
GpuTopology probe_gpu_topology(const CudaProbe& probe);

}  // namespace brant::port::memory
