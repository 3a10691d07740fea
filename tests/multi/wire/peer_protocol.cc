#include "multi/wire/peer_protocol.h"

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>

namespace brant::port::test {

bool write_all(int fd, const void* data, std::size_t bytes) noexcept {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t n = ::send(fd, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool read_all(int fd, void* data, std::size_t bytes) noexcept {
  auto* at = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const ssize_t n = ::recv(fd, at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool write_blob(int fd, const std::vector<std::byte>& blob) noexcept {
  const std::uint64_t bytes = blob.size();
  return write_all(fd, &bytes, sizeof bytes) && write_all(fd, blob.data(), blob.size());
}

bool read_blob(int fd, std::vector<std::byte>& blob) {
  std::uint64_t bytes = 0;
  if (!read_all(fd, &bytes, sizeof bytes) || bytes > (1u << 20)) return false;
  blob.resize(bytes);
  return read_all(fd, blob.data(), bytes);
}

}  // namespace brant::port::test
