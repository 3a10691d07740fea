#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace brant {

/// memcpy for what is mostly small and of any size: up to 16 bytes are copied without a call, by two moves that may
/// overlap. Null pointers are fine for 0 bytes.
inline void copy_small(void* to, const void* from, std::size_t bytes) noexcept {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  const auto by_two = [&]<typename Word>(Word first, Word last) {
    std::memcpy(&first, source, sizeof(Word));
    std::memcpy(&last, source + bytes - sizeof(Word), sizeof(Word));
    std::memcpy(target, &first, sizeof(Word));
    std::memcpy(target + bytes - sizeof(Word), &last, sizeof(Word));
  };
  if (bytes > 16) {
    std::memcpy(target, source, bytes);
  } else if (bytes >= 8) {
    by_two(std::uint64_t{}, std::uint64_t{});
  } else if (bytes >= 4) {
    by_two(std::uint32_t{}, std::uint32_t{});
  } else if (bytes >= 2) {
    by_two(std::uint16_t{}, std::uint16_t{});
  } else if (bytes == 1) {
    *target = *source;
  }
}

}  // namespace brant
