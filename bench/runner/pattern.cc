#include "bench/runner/pattern.h"

#include <algorithm>
#include <cstring>

namespace brant::bench {
namespace {

/// The finaliser of splitmix64: every bit of the input changes half of the output's.
constexpr std::uint64_t mix(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

constexpr std::size_t kWord = sizeof(std::uint64_t);

std::uint64_t word(std::uint64_t seed, std::size_t index) noexcept { return mix(seed + index); }

}  // namespace

void fill_pattern(std::span<std::byte> bytes, std::uint64_t message) noexcept {
  const std::uint64_t seed = mix(message);
  for (std::size_t offset = 0; offset < bytes.size(); offset += kWord) {
    const std::uint64_t value = word(seed, offset / kWord);
    std::memcpy(bytes.data() + offset, &value, std::min(kWord, bytes.size() - offset));
  }
}

void fill_poison(std::span<std::byte> bytes, std::uint64_t message) noexcept {
  fill_pattern(bytes, message);
  for (std::byte& byte : bytes) byte = ~byte;  // no byte is right by chance
}

std::optional<std::size_t> first_wrong_byte(std::span<const std::byte> bytes, std::uint64_t message) noexcept {
  const std::uint64_t seed = mix(message);
  for (std::size_t offset = 0; offset < bytes.size(); offset += kWord) {
    const std::uint64_t want = word(seed, offset / kWord);
    const std::size_t part = std::min(kWord, bytes.size() - offset);
    if (std::memcmp(bytes.data() + offset, &want, part) == 0) continue;
    for (std::size_t index = offset;; ++index) {
      if (bytes[index] != pattern_byte(message, index)) return index;
    }
  }
  return std::nullopt;
}

std::byte pattern_byte(std::uint64_t message, std::size_t index) noexcept {
  std::byte bytes[kWord];
  const std::uint64_t value = word(mix(message), index / kWord);
  std::memcpy(bytes, &value, kWord);
  return bytes[index % kWord];
}

}  // namespace brant::bench
