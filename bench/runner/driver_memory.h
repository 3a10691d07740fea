#pragma once

#include <cstddef>
#include <memory>

namespace brant::bench {

/// `bytes` of the GPU's memory by a plain `cuMemAlloc` in the primary context, of which brant knows nothing: what
/// `cudaMalloc` gives programs. Freed with the last copy of the pointer. Throws Error not_supported (no driver) or
/// no_memory.
std::shared_ptr<void> driver_memory(int ordinal, std::size_t bytes);

}  // namespace brant::bench
