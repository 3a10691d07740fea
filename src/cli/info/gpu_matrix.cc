#include "cli/info/gpu_matrix.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace brant::cli::info {
namespace {

using port::memory::GpuLink;
using port::memory::GpuTopology;
using port::memory::PcieWay;

constexpr char kNoAccess = '!';
constexpr char kNoAtomics = '~';
constexpr char kUnknownAccess = '?';
constexpr std::size_t kPairsShown = 8;

/// What stands behind a link's name; a space if nothing needs to be said.
char mark_of(const GpuLink& link) noexcept {
  if (!link.access) return kUnknownAccess;
  if (!*link.access) return kNoAccess;
  return link.atomics == false ? kNoAtomics : ' ';
}

std::vector<int> ordinals(const GpuTopology& topology) {
  std::set<int> all;
  for (const GpuLink& link : topology.links) all.insert(link.from);
  return {all.begin(), all.end()};
}

std::string grid(const GpuTopology& topology, const std::vector<int>& gpus) {
  std::size_t width = 4;
  for (const GpuLink& link : topology.links) width = std::max(width, link_name(link).size());
  const std::size_t head = fmt::format("GPU {}", gpus.back()).size();
  std::string text(head, ' ');
  for (const int to : gpus) text += fmt::format("  {:>{}} ", to, width);
  text.pop_back();
  for (const int from : gpus) {
    text += fmt::format("\n{:>{}}", fmt::format("GPU {}", from), head);
    for (const int to : gpus) {
      const GpuLink* link = topology.find(from, to);
      const std::string name = link == nullptr ? "X" : link_name(*link);
      text += fmt::format("  {:>{}}{}", name, width, link == nullptr ? ' ' : mark_of(*link));
    }
    text.erase(text.find_last_not_of(' ') + 1);
  }
  return text;
}

const char* pcie_words(PcieWay way) noexcept {
  switch (way) {
    case PcieWay::unknown: return "unknown link";
    case PcieWay::board: return "PCIe on one board";
    case PcieWay::bridge: return "one PCIe switch";
    case PcieWay::bridges: return "several PCIe switches";
    case PcieWay::host_bridge: return "PCIe and the CPU's host bridge";
    case PcieWay::node: return "PCIe and the host bridges of one NUMA node";
    case PcieWay::system: return "PCIe and the link between NUMA nodes";
  }
  return "unknown link";
}

/// The signs that occur, in words.
std::string legend(const GpuTopology& topology) {
  std::vector<std::string> signs;
  const auto add = [&](std::string sign) {
    if (std::find(signs.begin(), signs.end(), sign) == signs.end()) signs.push_back(std::move(sign));
  };
  const auto any = [&](auto&& holds) { return std::any_of(topology.links.begin(), topology.links.end(), holds); };
  if (any([](const GpuLink& link) { return link.nvlinks.value_or(0) > 0; })) {
    const bool switched = any([](const GpuLink& link) { return link.through_switch; });
    add(switched ? "NV# = # NVLinks through switches" : "NV# = # NVLinks");
  }
  for (const GpuLink& link : topology.links) {
    if (link.nvlinks.value_or(0) == 0) add(fmt::format("{} = {}", pcie_name(link.pcie), pcie_words(link.pcie)));
  }
  if (any([](const GpuLink& link) { return mark_of(link) == kNoAccess; }))
    add(fmt::format("{} = cannot map the other's memory", kNoAccess));
  if (any([](const GpuLink& link) { return mark_of(link) == kNoAtomics; }))
    add(fmt::format("{} = no native atomics", kNoAtomics));
  if (any([](const GpuLink& link) { return mark_of(link) == kUnknownAccess; }))
    add(fmt::format("{} behind a link = not known whether memory can be mapped", kUnknownAccess));
  return fmt::format("{}", fmt::join(signs, ", "));
}

/// Reasons, each with the pairs it is true of.
std::vector<std::pair<std::string, std::vector<std::string>>> reasons(const GpuTopology& topology) {
  std::vector<std::pair<std::string, std::vector<std::string>>> all;
  for (const GpuLink& link : topology.links) {
    if (link.reason.empty()) continue;
    auto known = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.first == link.reason; });
    if (known == all.end()) known = all.insert(all.end(), {link.reason, {}});
    const GpuLink* back = topology.find(link.to, link.from);
    const bool both = back != nullptr && back->reason == link.reason;
    if (both && link.from > link.to) continue;
    known->second.push_back(fmt::format("{}{}{}", link.from, both ? "-" : "->", link.to));
  }
  return all;
}

std::string pairs_text(const std::vector<std::string>& pairs) {
  const std::size_t shown = std::min(pairs.size(), kPairsShown);
  std::string text =
      fmt::format("{}", fmt::join(pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(shown), " "));
  return shown == pairs.size() ? text : text + fmt::format(" and {} more", pairs.size() - shown);
}

template <typename T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string gpu_matrix(const GpuTopology& topology) {
  std::string text;
  if (const std::vector<int> gpus = ordinals(topology); !gpus.empty()) {
    text = grid(topology, gpus) + "\n" + legend(topology);
    for (const auto& [reason, pairs] : reasons(topology)) text += fmt::format("\n{}: {}", pairs_text(pairs), reason);
    text += "\n(processes of different users or pid namespaces map nothing of each other: not to be seen from here)";
  }
  for (const std::string& gap : topology.gaps) text += (text.empty() ? "" : "\n") + gap;
  return text;
}

nlohmann::ordered_json gpu_links_json(const GpuTopology& topology) {
  nlohmann::ordered_json links = nlohmann::ordered_json::array();
  for (const GpuLink& link : topology.links) {
    links.push_back(
        {{"from", link.from},
         {"to", link.to},
         {"link", link_name(link)},
         {"nvlinks", or_null(link.nvlinks)},
         {"through_switch", link.through_switch},
         {"pcie", pcie_name(link.pcie)},
         {"access", or_null(link.access)},
         {"native_atomics", or_null(link.atomics)},
         {"array_access", or_null(link.arrays)},
         {"performance_rank", or_null(link.performance_rank)},
         {"reason", link.reason.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(link.reason)}});
  }
  return links;
}

}  // namespace brant::cli::info
