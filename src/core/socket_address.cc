#include "core/socket_address.h"

#include <arpa/inet.h>

#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/bytes.h"

namespace brant {

std::optional<SocketAddress> SocketAddress::from(const sockaddr* address) noexcept {
  SocketAddress result;
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    std::memcpy(&result.v4_, address, sizeof result.v4_);
    return result;
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  std::memcpy(&result.v6_, address, sizeof result.v6_);
  if (IN6_IS_ADDR_LINKLOCAL(&result.v6_.sin6_addr)) return std::nullopt;
  return result;
}

std::vector<std::byte> SocketAddress::bytes() const {
  ByteWriter writer;
  writer.number(any_.sa_family);
  if (family() == AF_INET) {
    writer.number(v4_.sin_port);
    writer.number(v4_.sin_addr);
  } else {
    writer.number(v6_.sin6_port);
    writer.number(v6_.sin6_addr);
  }
  return writer.bytes();
}

std::optional<SocketAddress> SocketAddress::from_bytes(std::span<const std::byte> bytes) noexcept {
  ByteReader reader(bytes);
  SocketAddress result;
  result.any_.sa_family = reader.number<sa_family_t>();
  std::size_t length = sizeof(sa_family_t) + sizeof(in_port_t);
  if (result.family() == AF_INET) {
    result.v4_.sin_port = reader.number<in_port_t>();
    result.v4_.sin_addr = reader.number<in_addr>();
    length += sizeof(in_addr);
  } else {
    result.v6_.sin6_port = reader.number<in_port_t>();
    result.v6_.sin6_addr = reader.number<in6_addr>();
    length += sizeof(in6_addr);
  }
  if (reader.failed() || bytes.size() != length || !from(result.get())) return std::nullopt;
  return result;
}

std::string SocketAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> name{};
  if (family() == AF_INET) {
    ::inet_ntop(AF_INET, &v4_.sin_addr, name.data(), name.size());
    return fmt::format("{}:{}", name.data(), ntohs(v4_.sin_port));
  }
  ::inet_ntop(AF_INET6, &v6_.sin6_addr, name.data(), name.size());
  return fmt::format("[{}]:{}", name.data(), ntohs(v6_.sin6_port));
}

bool SocketAddress::operator==(const SocketAddress& other) const noexcept {
  if (family() != other.family()) return false;
  if (family() == AF_INET)
    return v4_.sin_port == other.v4_.sin_port && v4_.sin_addr.s_addr == other.v4_.sin_addr.s_addr;
  return v6_.sin6_port == other.v6_.sin6_port &&
         std::memcmp(&v6_.sin6_addr, &other.v6_.sin6_addr, sizeof v6_.sin6_addr) == 0;
}

}  // namespace brant
