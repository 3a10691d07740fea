#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/socket_address.h"

namespace brant {

/// One address of a network interface of this host that is up.
struct InterfaceAddress {
  std::string interface;
  SocketAddress address;
  bool loopback = false;
};

/// Interfaces in the order in which they shall be taken.
struct InterfaceWishes {
  std::vector<std::string> named;  ///< By the user: no others then, if one of them has an address.
  std::string default_route;       ///< Empty if there is none.
};

/// The address at which other hosts most likely reach this process: of the named interfaces, else of the default route,
/// else any that is no loopback, else that. IPv4 before IPv6 in each. Null if there are none.
const InterfaceAddress* choose_address(std::span<const InterfaceAddress> all, const InterfaceWishes& wishes) noexcept;

/// The interfaces that a value of UCX_NET_DEVICES stands for: "eth0,mlx5_0:1" names a card of the network by its device
/// as well, whose interfaces lie in `devices` (/sys/class/infiniband).
std::vector<std::string> interfaces_of(std::string_view net_devices, const std::string& devices);

/// Of this host, now, with port 0. Nothing if no interface has an address.
std::optional<SocketAddress> own_address();

}  // namespace brant
