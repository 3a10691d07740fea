#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

/// The bounds that all bootstrap adapters share, so that a program that runs under one runs under all.
namespace brant::port {

inline constexpr std::size_t kMaxKeyBytes = 64;
inline constexpr std::size_t kMaxValueBytes = std::size_t{1} << 20;

/// What is wrong with a key and the size of its value, in words; empty if nothing is.
inline std::string key_value_fault(std::string_view key, std::size_t value_bytes) {
  if (key.empty()) return "the key is empty; keys have 1 to 64 characters";
  if (key.size() > kMaxKeyBytes) {
    return fmt::format("the key '{}...' has {} characters, more than {}", key.substr(0, 24), key.size(), kMaxKeyBytes);
  }
  for (const char c : key) {
    if (c <= ' ' || c > '~') return "the key has a character that is not printable ASCII";
  }
  if (value_bytes > kMaxValueBytes) {
    return fmt::format("the value of '{}' has {} bytes, more than {}", key, value_bytes, kMaxValueBytes);
  }
  return {};
}

/// The exit code of an aborted job: what was asked for, if a process can have it, otherwise 1. Never 0.
inline int abort_exit_code(int asked) noexcept { return asked >= 1 && asked <= 255 ? asked : 1; }

}  // namespace brant::port
