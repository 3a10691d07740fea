#include "core/own_address.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>

#include "base/env.h"

namespace brant {
namespace {

/// The best of those that `fits` holds for: IPv4 first, since a job needs one family and every host has that.
template <typename Fits>
const InterfaceAddress* best_of(std::span<const InterfaceAddress> all, const Fits& fits) noexcept {
  const InterfaceAddress* best = nullptr;
  for (const InterfaceAddress& one : all) {
    if (!fits(one)) continue;
    if (one.address.family() == AF_INET) return &one;
    if (best == nullptr) best = &one;
  }
  return best;
}

std::vector<InterfaceAddress> interface_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    constexpr unsigned kUsable = IFF_UP | IFF_RUNNING;
    const auto address = SocketAddress::from(one->ifa_addr);
    if (address && (one->ifa_flags & kUsable) == kUsable)
      found.push_back({one->ifa_name, *address, (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return found;
}

/// The interface of the IPv4 route to everywhere that costs least.
std::string default_route() {
  std::ifstream file("/proc/net/route");
  std::string line, best;
  std::getline(file, line);  // the names of the columns
  for (unsigned long least = std::numeric_limits<unsigned long>::max(); std::getline(file, line);) {
    std::istringstream columns(line);
    std::string name, destination, gateway, flags, references, uses, mask;
    unsigned long metric = 0;
    columns >> name >> destination >> gateway >> flags >> references >> uses >> metric >> mask;
    if (!columns || destination != "00000000" || mask != "00000000" || metric >= least) continue;
    least = metric;
    best = name;
  }
  return best;
}

}  // namespace

const InterfaceAddress* choose_address(std::span<const InterfaceAddress> all, const InterfaceWishes& wishes) noexcept {
  for (const std::string& name : wishes.named) {
    if (const auto* found = best_of(all, [&](const auto& one) { return one.interface == name; })) return found;
  }
  if (const auto* found = best_of(all, [&](const auto& one) { return one.interface == wishes.default_route; }))
    return found;
  if (const auto* found = best_of(all, [](const auto& one) { return !one.loopback; })) return found;
  return best_of(all, [](const auto&) { return true; });
}

std::vector<std::string> interfaces_of(std::string_view net_devices, const std::string& devices) {
  std::vector<std::string> found;
  std::istringstream names{std::string(net_devices)};
  for (std::string name; std::getline(names, name, ',');) {
    name = name.substr(0, name.find(':'));
    if (name.empty()) continue;
    std::error_code none;
    const std::size_t before = found.size();
    for (const auto& entry : std::filesystem::directory_iterator(devices + "/" + name + "/device/net", none))
      found.push_back(entry.path().filename().string());
    if (found.size() == before) found.push_back(name);
    std::sort(found.begin() + static_cast<std::ptrdiff_t>(before), found.end());
  }
  return found;
}

std::optional<SocketAddress> own_address() {
  const std::vector<InterfaceAddress> all = interface_addresses();
  const InterfaceWishes wishes{interfaces_of(env("UCX_NET_DEVICES"), "/sys/class/infiniband"), default_route()};
  const InterfaceAddress* chosen = choose_address(all, wishes);
  return chosen == nullptr ? std::nullopt : std::optional(chosen->address);
}

}  // namespace brant
