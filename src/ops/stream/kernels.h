#pragma once

#include "ops/stream/steps.h"
#include "port/memory.h"

namespace brant {

/// The kernels of stream-triggered transfers, loaded on a device. Launches never wait, and can be captured.
class StreamKernels {
 public:
  /// The memory of both ends, as the device reaches it.
  struct Ends {
    StreamMailbox* own = nullptr;
    StreamMailbox* peer = nullptr;
    StreamControl* control = nullptr;
  };

  /// not_supported where the device runs no kernels, or not these.
  Status load(port::Device& device) noexcept;

  Status send(const Ends& ends, const std::byte* from, std::uint64_t bytes, StreamControl::Report* report,
              port::Stream* stream) const noexcept;
  Status start(const Ends& ends, const stream_steps::Receive& receive, port::Stream* stream) const noexcept;
  Status finish(const Ends& ends, StreamControl::Report* report, port::Stream* stream) const noexcept;
  Status receive(const Ends& ends, const stream_steps::Receive& receive, StreamControl::Report* report,
                 port::Stream* stream) const noexcept;

 private:
  template <typename... Args>
  Status launch(port::Kernel* kernel, unsigned blocks, unsigned threads, port::Stream* stream,
                Args... arguments) const noexcept;

  port::Kernels* kernels_ = nullptr;
  port::Kernel* send_ = nullptr;
  port::Kernel* start_ = nullptr;
  port::Kernel* finish_ = nullptr;
  port::Kernel* receive_ = nullptr;
};

}  // namespace brant
