#include "base/base64.h"

#include <cstdint>

namespace brant {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr unsigned kDigitBits = 6;
constexpr unsigned kByteBits = 8;

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() * kByteBits + kDigitBits - 1) / kDigitBits);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const std::byte byte : bytes) {
    bits = bits << kByteBits | static_cast<std::uint32_t>(byte);
    for (count += kByteBits; count >= kDigitBits;) text += kDigits[bits >> (count -= kDigitBits) & 63u];
  }
  if (count != 0) text += kDigits[bits << (kDigitBits - count) & 63u];
  return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() * kDigitBits / kByteBits);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char digit : text) {
    const std::size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << kDigitBits | static_cast<std::uint32_t>(value);
    count += kDigitBits;
    if (count < kByteBits) continue;
    count -= kByteBits;
    bytes.push_back(static_cast<std::byte>(bits >> count & 0xffu));
  }
  // What is left over is less than a digit, and zero: each run of bytes has one text.
  if (count >= kDigitBits || (bits & ((1u << count) - 1)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace brant
