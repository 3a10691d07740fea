#pragma once

#include <map>
#include <mutex>

#include "port/memory.h"
#include "port/memory/cuda/cuda_context.h"

namespace brant::port::memory {

/// Kernels of a GPU: images loaded once each, functions loaded at once. A Kernel* is the driver's CUfunction.
class CudaKernels final : public Kernels {
 public:
  CudaKernels(const CudaContext& context, bool cooperative) noexcept : context_(context), cooperative_(cooperative) {}
  ~CudaKernels() override;

  /// not_supported: no image (built without nvcc), or none for this GPU. not_found: no such symbol. invalid_argument:
  /// the arguments the source names are not those of the kernel (checked from CUDA 12.4 on).
  Result<Kernel*> load(const KernelSource& source) noexcept override;
  Status launch(Kernel* kernel, const LaunchShape& shape, void** arguments, Stream* stream) noexcept override;
  Result<unsigned> blocks_at_once(Kernel* kernel, const LaunchShape& shape) noexcept override;
  Status launch_cooperative(Kernel* kernel, const LaunchShape& shape, void** arguments,
                            Stream* stream) noexcept override;

 private:
  Result<CUmodule> module_of(const KernelSource& source) noexcept;
  Status check_arguments(CUfunction function, const KernelSource& source) const noexcept;

  const CudaContext& context_;
  const bool cooperative_;
  std::mutex mutex_;
  std::map<const std::byte*, CUmodule> modules_;  ///< By the address of the image. Protected by mutex_.
};

}  // namespace brant::port::memory
