#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// What a test says to its peer process over the socket, and what the peer answers. Plain structs: both ends are one
/// build.
namespace brant::port::test {

enum class Verb : std::uint32_t {
  echo,     ///< Receive `count` messages of `tag`, each of at most `bytes`, and send each back with kBackTag.
  send,     ///< Post `count` sends of `bytes` with `tag`.
  receive,  ///< Post `count` receives of `bytes` with `tag`.
  send_am,  ///< Send `count` active messages of `bytes` with id 2.
  segment,  ///< Allocate a shared segment of `bytes`; answers address, key length and then the key. `tag` 1: ordinary
            ///< memory.
  stop,     ///< Make no progress any more.
  sleep,    ///< From now on wait with arm and poll, not by spinning.
  quit,     ///< Close the wire and end with code 0.
};

inline constexpr std::uint64_t kBackTag = std::uint64_t{1} << 63;
inline constexpr unsigned kEchoId = 1;  ///< Active messages that the peer sends back.
inline constexpr unsigned kNewsId = 2;

struct Command {
  Verb verb = Verb::quit;
  std::uint32_t spare = 0;
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};

/// Sent when a command was started, and again (`finished`) when its operations are over.
struct Answer {
  std::uint32_t verb = 0;
  std::uint32_t finished = 0;
  std::uint64_t address = 0;
  std::uint64_t blob_bytes = 0;  ///< This many bytes follow.
  std::uint64_t failures = 0;    ///< Operations that ended with another status than ok.
};

/// Blocking; false at the end of the stream.
bool write_all(int fd, const void* data, std::size_t bytes) noexcept;
bool read_all(int fd, void* data, std::size_t bytes) noexcept;
bool write_blob(int fd, const std::vector<std::byte>& blob) noexcept;
bool read_blob(int fd, std::vector<std::byte>& blob);

}  // namespace brant::port::test
