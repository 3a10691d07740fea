#pragma once

#include <array>

#include "ops/coll/device/stream_board.h"
#include "port/memory.h"

namespace brant::coll {

/// The kernels of collectives of streams, loaded on a device. Launches never wait, and can be captured.
class StreamKernels {
 public:
  /// not_supported where the device runs no kernels, or not these.
  Status load(port::Device& device) noexcept;
  [[nodiscard]] bool is_loaded() const noexcept { return loaded_[0] != nullptr; }
  Status launch(const StreamCall& call, unsigned blocks, port::Stream* stream) const noexcept;

 private:
  port::Kernels* kernels_ = nullptr;
  std::array<port::Kernel*, 4> loaded_{};
};

}  // namespace brant::coll
