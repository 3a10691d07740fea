#pragma once

#include <cstdint>

#include "base/log.h"
#include "port/memory.h"

namespace brant::port::memory {

/// Of a block, on every GPU there is.
inline constexpr unsigned kBlockThreadsMax = 1024;

/// The answer to a cooperative launch of more blocks than the `fit` that are resident at once.
inline Status refuse_grid(const LaunchShape& shape, unsigned fit) noexcept {
  log::error(
      "a grid of {} blocks of {} x {} x {} threads and {} bytes of shared memory was to be launched cooperatively, but "
      "only {} such blocks are resident at once: launch at most so many and let each do the work of several",
      shape.blocks(), shape.block[0], shape.block[1], shape.block[2], shape.shared_bytes, fit);
  return Status::limit_reached;
}

}  // namespace brant::port::memory
