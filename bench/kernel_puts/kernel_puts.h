#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "brant/base/buffer.h"

namespace brant::bench {

/// So many blocks put side by side at most.
inline constexpr unsigned kPuttingBlocksMax = 64;

struct KernelPutsOptions {
  MemoryKind memory = MemoryKind::cuda;                               ///< Of the device: cuda or emulated.
  std::vector<std::size_t> sizes{8, 1024, 65536, 1 << 20, 16 << 20};  ///< Multiples of 8, ascending.
  unsigned blocks = 32;  ///< That put side by side where bandwidth is measured.
  std::size_t iterations = 2000;
  bool check = false;  ///< Also look whether what was put before a flag is there behind it.
  std::string json;    ///< File to append rows to.
};

/// Measures what kernels move by themselves, over a window into the memory of the other process: no CPU takes part. Two
/// processes, each with a device of its own, which map each other's memory. Throws Error.
void measure_kernel_puts(const KernelPutsOptions& options);

}  // namespace brant::bench
