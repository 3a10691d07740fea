#include "base/hmac.h"

#include <algorithm>
#include <bit>

namespace brant {
namespace {

/// The fractions of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/// Big-endian words, as the standard has them.
std::uint32_t load_word(const std::byte* bytes) noexcept {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = (word << 8) | static_cast<std::uint32_t>(bytes[i]);
  return word;
}

void store_word(std::uint32_t word, std::byte* bytes) noexcept {
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(word >> (24 - 8 * i));
}

}  // namespace

void Sha256::take_block() noexcept {
  std::array<std::uint32_t, 64> words;
  for (std::size_t i = 0; i < 16; ++i) words[i] = load_word(&block_[4 * i]);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t early = words[i - 15], late = words[i - 2];
    words[i] = words[i - 16] + words[i - 7] + (std::rotr(early, 7) ^ std::rotr(early, 18) ^ (early >> 3)) +
               (std::rotr(late, 17) ^ std::rotr(late, 19) ^ (late >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) +
                                kRoundConstants[i] + words[i];
    const std::uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<std::uint32_t, 8> change = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += change[i];
  filled_ = 0;
}

void Sha256::add(std::span<const std::byte> bytes) noexcept {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t taken = std::min(bytes.size(), block_.size() - filled_);
    std::copy_n(bytes.begin(), taken, block_.begin() + static_cast<std::ptrdiff_t>(filled_));
    filled_ += taken;
    bytes = bytes.subspan(taken);
    if (filled_ == block_.size()) take_block();
  }
}

Digest Sha256::finish() noexcept {
  const std::uint64_t bits = 8 * bytes_;
  constexpr std::byte kEnd{0x80}, kFill{0};
  add({&kEnd, 1});
  while (filled_ != 56) add({&kFill, 1});
  store_word(static_cast<std::uint32_t>(bits >> 32), &block_[56]);
  store_word(static_cast<std::uint32_t>(bits), &block_[60]);
  take_block();
  Digest digest;
  for (std::size_t i = 0; i < 8; ++i) store_word(state_[i], &digest[4 * i]);
  return digest;
}

Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> text) noexcept {
  std::array<std::byte, 64> inner{};
  if (key.size() <= inner.size()) {
    std::copy(key.begin(), key.end(), inner.begin());
  } else {
    Sha256 shortened;
    shortened.add(key);
    const Digest digest = shortened.finish();
    std::copy(digest.begin(), digest.end(), inner.begin());
  }
  std::array<std::byte, 64> outer = inner;
  for (std::byte& b : inner) b ^= std::byte{0x36};
  for (std::byte& b : outer) b ^= std::byte{0x5c};
  Sha256 hash;
  hash.add(inner);
  hash.add(text);
  const Digest digest = hash.finish();
  Sha256 result;
  result.add(outer);
  result.add(digest);
  return result.finish();
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  if (a.size() != b.size()) return false;
  std::byte difference{0};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

}  // namespace brant
