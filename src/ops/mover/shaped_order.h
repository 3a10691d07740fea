#pragma once

#include <cstddef>
#include <cstdint>

#include "port/simt.h"

namespace brant {

/// A copy between two strided ends: the argument of its kernel, by value. It goes in units of 1 to 16 bytes, which
/// divide all runs, strides and addresses.
struct ShapedOrder {
  static constexpr unsigned kDimsMax = 8;
  struct End {
    std::byte* first;        ///< Where the first run of the shape starts.
    std::uint64_t position;  ///< Units of the shape before this copy.
    std::uint64_t run;       ///< Units that lie together. 0: all.
    std::uint64_t count[kDimsMax];
    std::int64_t stride[kDimsMax];  ///< In bytes.
    std::uint32_t dims;
  };
  End to;
  End from;
  std::uint64_t units;
  std::uint32_t unit;  ///< Bytes.
  bool narrow;         ///< All positions fit into 32 bits, which GPUs divide faster.
};
static_assert(sizeof(ShapedOrder) <= 4096, "what a kernel's arguments may take");

/// Where unit `index` of the copy lies at one end.
template <typename Index>
BRANT_DEVICE_CODE std::int64_t unit_offset(const ShapedOrder::End& end, std::uint64_t index, std::uint32_t unit) {
  const std::uint64_t position = end.position + index;
  if (end.run == 0) return static_cast<std::int64_t>(position * unit);
  const Index run = static_cast<Index>(end.run);
  Index point = static_cast<Index>(position) / run;
  auto offset =
      static_cast<std::int64_t>((static_cast<Index>(position) - point * run) * static_cast<std::uint64_t>(unit));
  for (std::uint32_t i = 0; i < end.dims; ++i) {
    const Index count = static_cast<Index>(end.count[i]);
    const Index following = point / count;
    offset += static_cast<std::int64_t>(point - following * count) * end.stride[i];
    point = following;
  }
  return offset;
}

/// Whether 32 bits do for a copy of so many units: for positions and for all that they are divided by.
constexpr bool is_narrow(const ShapedOrder::End& end, std::uint64_t units) noexcept {
  constexpr std::uint64_t kMost = 0xffff'ffff;
  if (units > kMost || end.position > kMost - units || end.run > kMost) return false;
  for (std::uint32_t i = 0; i < end.dims; ++i) {
    if (end.count[i] > kMost) return false;
  }
  return true;
}

}  // namespace brant
