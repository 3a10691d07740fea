#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace brant {

/// An IPv4 or IPv6 address with a port.
class SocketAddress {
 public:
  /// Nothing for other families, and for addresses that mean something on their own link only.
  static std::optional<SocketAddress> from(const sockaddr* address) noexcept;
  /// What `bytes` gave, also in another process. Nothing for all else.
  static std::optional<SocketAddress> from_bytes(std::span<const std::byte> bytes) noexcept;
  [[nodiscard]] std::vector<std::byte> bytes() const;

  [[nodiscard]] const sockaddr* get() const noexcept { return &any_; }
  [[nodiscard]] socklen_t length() const noexcept { return any_.sa_family == AF_INET ? sizeof v4_ : sizeof v6_; }
  [[nodiscard]] int family() const noexcept { return any_.sa_family; }
  /// "10.0.0.1:4711", "[fd00::1]:4711".
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool operator==(const SocketAddress& other) const noexcept;

 private:
  SocketAddress() noexcept : v6_{} {}

  union {
    sockaddr any_;
    sockaddr_in v4_;
    sockaddr_in6 v6_;
  };
};

}  // namespace brant
