#pragma once

#include <cstdint>

#include "brant/base/simt.h"

/// The 16-bit floats as words, and back, rounded to the nearest and of two to the even one. GPUs have instructions for
/// that, which differ in the bits of a NaN alone.
namespace brant::coll {

/// std::bit_cast, which is no function of kernels.
template <typename To, typename From>
BRANT_DEVICE_CODE To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, value);
}

BRANT_DEVICE_CODE float from_bf16(std::uint16_t word) { return bits_as<float>(std::uint32_t{word} << 16); }

#ifdef __CUDACC__

BRANT_DEVICE_CODE std::uint16_t to_bf16(float value) {
  std::uint16_t word;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(word) : "f"(value));
  return word;
}
BRANT_DEVICE_CODE float from_f16(std::uint16_t word) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(word));
  return value;
}
BRANT_DEVICE_CODE std::uint16_t to_f16(float value) {
  std::uint16_t word;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(word) : "f"(value));
  return word;
}

#else

BRANT_DEVICE_CODE std::uint16_t to_bf16(float value) {
  const auto bits = bits_as<std::uint32_t>(value);
  if ((bits & 0x7fff'ffffu) > 0x7f80'0000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);  // a quiet NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

BRANT_DEVICE_CODE float from_f16(std::uint16_t word) {
  const std::uint32_t sign = std::uint32_t{word & 0x8000u} << 16;
  const std::uint32_t exponent = word >> 10 & 0x1fu;
  const std::uint32_t fraction = word & 0x3ffu;
  if (exponent == 0x1f) return bits_as<float>(sign | 0x7f80'0000u | fraction << 13);
  if (exponent != 0) return bits_as<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = static_cast<float>(fraction) * 0x1p-24f;  // exact
  return bits_as<float>(sign | bits_as<std::uint32_t>(small));
}

BRANT_DEVICE_CODE std::uint16_t to_f16(float value) {
  const auto bits = bits_as<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fff'ffffu;
  if (magnitude > 0x7f80'0000u) return static_cast<std::uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x4780'0000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65536 and more: infinite
  if (magnitude < 0x3880'0000u) {  // below the smallest normal one: its last bit is worth 2^-24
    const float shifted = bits_as<float>(magnitude) + 0.5f;  // the sum is rounded to multiples of 2^-24
    return static_cast<std::uint16_t>(sign | (bits_as<std::uint32_t>(shifted) - 0x3f00'0000u));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | (rounded - (112u << 23)) >> 13);
}

#endif

}  // namespace brant::coll
