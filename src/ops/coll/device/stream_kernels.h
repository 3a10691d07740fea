#pragma once

#include "ops/coll/device/stream_board.h"
#include "port/memory.h"

namespace brant::coll {

/// The kernel of collectives of streams, loaded on a device. Launches never wait, and can be captured.
class StreamKernels {
 public:
  /// not_supported where the device runs no kernels, or not this one.
  Status load(port::Device& device) noexcept;
  [[nodiscard]] bool is_loaded() const noexcept { return kernel_ != nullptr; }
  Status launch(const StreamCall& call, unsigned blocks, port::Stream* stream) const noexcept;

 private:
  port::Kernels* kernels_ = nullptr;
  port::Kernel* kernel_ = nullptr;
};

}  // namespace brant::coll
