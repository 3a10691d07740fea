#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "port/memory/emulated/emulated_streams.h"

namespace brant::port::memory {

/// Kernels of an emulated device: their host versions, run by the stream's thread. Limits on shapes and arguments are
/// those of a GPU, so that a launch a GPU would refuse is refused here too.
class EmulatedKernels final : public Kernels {
 public:
  explicit EmulatedKernels(EmulatedStreams& streams) noexcept : streams_(streams) {}

  /// not_supported if the kernel has no host version.
  Result<Kernel*> load(const KernelSource& source) noexcept override;
  Status launch(Kernel* kernel, const LaunchShape& shape, void** arguments, Stream* stream) noexcept override;

 private:
  struct Loaded {
    HostKernel function = nullptr;
    std::vector<std::size_t> argument_bytes;
  };

  EmulatedStreams& streams_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Loaded>> loaded_;  ///< Protected by mutex_; the entries are constant.
};

}  // namespace brant::port::memory
