#pragma once

#include <cstddef>
#include <cstdint>

namespace brant {

/// Copies with all threads of the grid's row (blocks along x), 16 bytes at a time where both ends are aligned to that.
__device__ __forceinline__ void copy_bytes(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  const std::uint64_t first = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x;
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  const std::uint64_t misaligned =
      (reinterpret_cast<std::uint64_t>(to) | reinterpret_cast<std::uint64_t>(from)) % sizeof(int4);
  const std::uint64_t wide = misaligned != 0 ? 0 : bytes / sizeof(int4);
  for (std::uint64_t i = first; i < wide; i += stride) {
    reinterpret_cast<int4*>(to)[i] = reinterpret_cast<const int4*>(from)[i];
  }
  for (std::uint64_t i = wide * sizeof(int4) + first; i < bytes; i += stride) to[i] = from[i];
}

}  // namespace brant
