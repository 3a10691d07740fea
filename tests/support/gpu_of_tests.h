#pragma once

#include <cstdlib>
#include <string_view>

#include "brant/base/buffer.h"
#include "brant/core/runtime.h"

namespace brant::test {

/// The device of tests that launch kernels: the emulated one, or with BRANT_TEST_GPU=cuda a GPU, whose hazards the
/// emulated one cannot have. All ranks of a job in this process share the GPU.
inline GpuChoice gpu_of_tests() {
  const char* const asked = std::getenv("BRANT_TEST_GPU");
  return asked != nullptr && std::string_view(asked) == "cuda" ? GpuChoice::cuda : GpuChoice::emulated;
}

/// The memory of that device.
inline MemoryKind device_memory() {
  return gpu_of_tests() == GpuChoice::cuda ? MemoryKind::cuda : MemoryKind::emulated;
}

}  // namespace brant::test
