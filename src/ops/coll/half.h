#pragma once

#include <bit>
#include <cstdint>

/// The 16-bit floats as words, and back, rounded to the nearest and of two to the even one.
namespace brant::coll {

inline float from_bf16(std::uint16_t word) noexcept { return std::bit_cast<float>(std::uint32_t{word} << 16); }

inline std::uint16_t to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fff'ffffu) > 0x7f80'0000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);  // a quiet NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline float from_f16(std::uint16_t word) noexcept {
  const std::uint32_t sign = std::uint32_t{word & 0x8000u} << 16;
  const std::uint32_t exponent = word >> 10 & 0x1fu;
  const std::uint32_t fraction = word & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f80'0000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = static_cast<float>(fraction) * 0x1p-24f;  // exact
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(small));
}

inline std::uint16_t to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fff'ffffu;
  if (magnitude > 0x7f80'0000u) return static_cast<std::uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x4780'0000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65536 and more: infinite
  if (magnitude < 0x3880'0000u) {  // below the smallest normal one: its last bit is worth 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;  // the sum is rounded to multiples of 2^-24
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f00'0000u));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | (rounded - (112u << 23)) >> 13);
}

}  // namespace brant::coll
