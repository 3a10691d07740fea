#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace brant {

using Digest = std::array<std::byte, 32>;

/// SHA-256 (FIPS 180-4) of bytes that come in parts. About 200 MB/s: for short texts, not for messages.
class Sha256 {
 public:
  void add(std::span<const std::byte> bytes) noexcept;
  /// Of all that was added; the object is used up.
  Digest finish() noexcept;

 private:
  void take_block() noexcept;

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};
  std::size_t filled_ = 0;
  std::uint64_t bytes_ = 0;
};

/// HMAC-SHA-256 (RFC 2104): only who has the key can make it.
Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> text) noexcept;

/// In a time that tells nothing about where the two differ. False for different lengths.
bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) noexcept;

}  // namespace brant
