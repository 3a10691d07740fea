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
  /// So many blocks are resident at once.
  EmulatedKernels(EmulatedStreams& streams, const StayingKernels& staying, unsigned blocks_at_once) noexcept
      : streams_(streams), staying_(staying), blocks_at_once_(blocks_at_once) {}

  /// not_supported if the kernel has no host version.
  Result<Kernel*> load(const KernelSource& source) noexcept override;
  Status launch(Kernel* kernel, const LaunchShape& shape, void** arguments, Stream* stream) noexcept override;
  Result<unsigned> blocks_at_once(Kernel* kernel, const LaunchShape& shape) noexcept override;
  /// The host version is called once for each block, on as many threads.
  Status launch_cooperative(Kernel* kernel, const LaunchShape& shape, void** arguments,
                            Stream* stream) noexcept override;

 private:
  struct Loaded {
    HostKernel function = nullptr;
    std::vector<std::size_t> argument_bytes;
  };

  Status queue(Kernel* kernel, const LaunchShape& shape, void** arguments, Stream* stream, bool cooperative) noexcept;

  EmulatedStreams& streams_;
  const StayingKernels& staying_;
  const unsigned blocks_at_once_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Loaded>> loaded_;  ///< Protected by mutex_; the entries are constant.
};

}  // namespace brant::port::memory
