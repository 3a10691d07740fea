#pragma once

#include <map>
#include <mutex>

#include "port/memory.h"
#include "port/memory/cuda/cuda_context.h"

namespace brant::port::memory {

/// Kernels of a GPU: images loaded once each, functions loaded at once. A Kernel* is the driver's CUfunction.
class CudaKernels final : public Kernels {
 public:
  explicit CudaKernels(const CudaContext& context) noexcept : context_(context) {}
  ~CudaKernels() override;

  /// not_supported: no image (built without nvcc), or none for this GPU. not_found: no such symbol. invalid_argument:
  /// the arguments the source names are not those of the kernel (checked from CUDA 12.4 on).
  Result<Kernel*> load(const KernelSource& source) noexcept override;
  Status launch(Kernel* kernel, const LaunchShape& shape, void** arguments, Stream* stream) noexcept override;

 private:
  Result<CUmodule> module_of(const KernelSource& source) noexcept;
  Status check_arguments(CUfunction function, const KernelSource& source) const noexcept;

  const CudaContext& context_;
  std::mutex mutex_;
  std::map<const std::byte*, CUmodule> modules_;  ///< By the address of the image. Protected by mutex_.
};

}  // namespace brant::port::memory
