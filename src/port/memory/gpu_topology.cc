#include "port/memory/gpu_topology.h"

#include <algorithm>

#include <fmt/format.h>

namespace brant::port::memory {

const GpuLink* GpuTopology::find(int from, int to) const noexcept {
  const auto found =
      std::find_if(links.begin(), links.end(), [&](const GpuLink& link) { return link.from == from && link.to == to; });
  return found == links.end() ? nullptr : &*found;
}

std::string_view pcie_name(PcieWay way) noexcept {
  switch (way) {
    case PcieWay::unknown: return "?";
    case PcieWay::board: return "PSB";
    case PcieWay::bridge: return "PIX";
    case PcieWay::bridges: return "PXB";
    case PcieWay::host_bridge: return "PHB";
    case PcieWay::node: return "NODE";
    case PcieWay::system: return "SYS";
  }
  return "?";
}

std::string link_name(const GpuLink& link) {
  const int nvlinks = link.nvlinks.value_or(0);
  return nvlinks > 0 ? fmt::format("NV{}", nvlinks) : std::string(pcie_name(link.pcie));
}

}  // namespace brant::port::memory
