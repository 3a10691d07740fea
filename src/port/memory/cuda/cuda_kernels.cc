#include "port/memory/cuda/cuda_kernels.h"

#include <new>

#include "base/log.h"
#include "port/memory/grid_limits.h"
#include "port/memory/late_load.h"

namespace brant::port::memory {

CudaKernels::~CudaKernels() {
  if (!context_.own_process()) return;
  const ContextScope scope(context_);
  for (const auto& [image, module] : modules_) context_.driver().module_unload(module);
}

Result<CUmodule> CudaKernels::module_of(const KernelSource& source) noexcept {
  const std::lock_guard lock(mutex_);
  if (const auto known = modules_.find(source.image.data()); known != modules_.end()) return known->second;
  warn_of_late_load(context_.staying_kernels(), source.symbol);
  CUmodule module = nullptr;
  const Status status = beside_captures(
      context_, "cuModuleLoadData", [&] { return context_.driver().module_load_data(&module, source.image.data()); });
  if (status != Status::ok) {
    log::error(
        "the image of kernel {} cannot be loaded on this GPU; if it holds no code for it, build brant with its "
        "architecture in "
        "BRANT_CUDA_SASS",
        source.symbol);
    return status;
  }
  try {
    modules_.emplace(source.image.data(), module);
    return module;
  } catch (const std::bad_alloc&) {
    const ContextScope scope(context_);
    context_.driver().module_unload(module);
    return Status::no_memory;
  }
}

Status CudaKernels::check_arguments(CUfunction function, const KernelSource& source) const noexcept {
  const auto info = context_.driver().func_get_param_info;
  if (info == nullptr) return Status::ok;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < source.argument_bytes.size(); ++i) {
    const CUresult result = info(function, i, &offset, &bytes);
    if (result == CUDA_SUCCESS && bytes == source.argument_bytes[i]) continue;
    log::error("kernel {}: argument {} is {} bytes in its source record but {} in the GPU's code", source.symbol, i,
               source.argument_bytes[i], result == CUDA_SUCCESS ? bytes : 0);
    return Status::invalid_argument;
  }
  if (info(function, source.argument_bytes.size(), &offset, &bytes) == CUDA_SUCCESS) {
    log::error("kernel {} has more arguments than the {} its source record names", source.symbol,
               source.argument_bytes.size());
    return Status::invalid_argument;
  }
  return Status::ok;
}

Result<Kernel*> CudaKernels::load(const KernelSource& source) noexcept {
  if (source.symbol == nullptr) return Status::invalid_argument;
  if (source.image.empty()) {
    log::error("kernel {} has no image for a GPU: brant was built without nvcc", source.symbol);
    return Status::not_supported;
  }
  const Result<CUmodule> module = module_of(source);
  if (!module) return module.status();
  CUfunction function = nullptr;
  const Status found = beside_captures(context_, "cuModuleGetFunction", [&] {
    const CUresult result = context_.driver().module_get_function(&function, *module, source.symbol);
    // Loading lazily at the first launch would wait for the kernels that run then: a deadlock if one of them waits for
    // us.
    if (result != CUDA_SUCCESS || context_.driver().func_load == nullptr) return result;
    return context_.driver().func_load(function);
  });
  if (found != Status::ok) return found;
  if (const Status same = check_arguments(function, source); same != Status::ok) return same;
  return reinterpret_cast<Kernel*>(function);
}

Status CudaKernels::launch(Kernel* kernel, const LaunchShape& shape, void** arguments, Stream* stream) noexcept {
  if (kernel == nullptr || stream == nullptr) return Status::invalid_argument;
  return in_context(context_, "cuLaunchKernel", [&] {
    return context_.driver().launch_kernel(reinterpret_cast<CUfunction>(kernel), shape.grid[0], shape.grid[1],
                                           shape.grid[2], shape.block[0], shape.block[1], shape.block[2],
                                           shape.shared_bytes, reinterpret_cast<CUstream>(stream), arguments, nullptr);
  });
}

Result<unsigned> CudaKernels::blocks_at_once(Kernel* kernel, const LaunchShape& shape) noexcept {
  const std::uint64_t threads = std::uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
  if (kernel == nullptr || threads == 0 || threads > kBlockThreadsMax) return Status::invalid_argument;
  int on_each = 0;
  int processors = 0;
  const Status status = in_context(context_, "cuOccupancyMaxActiveBlocksPerMultiprocessor", [&] {
    const CUresult counted = context_.driver().device_get_attribute(
        &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, context_.device());
    if (counted != CUDA_SUCCESS) return counted;
    return context_.driver().occupancy_max_active_blocks(&on_each, reinterpret_cast<CUfunction>(kernel),
                                                         static_cast<int>(threads), shape.shared_bytes);
  });
  if (status != Status::ok) return status;
  return static_cast<unsigned>(on_each) * static_cast<unsigned>(processors);
}

Status CudaKernels::launch_cooperative(Kernel* kernel, const LaunchShape& shape, void** arguments,
                                       Stream* stream) noexcept {
  if (kernel == nullptr || stream == nullptr) return Status::invalid_argument;
  if (!cooperative_) return Status::not_supported;
  bool too_large = false;
  const Status status = in_context(context_, "cuLaunchCooperativeKernel", [&] {
    const CUresult result = context_.driver().launch_cooperative_kernel(
        reinterpret_cast<CUfunction>(kernel), shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0],
        shape.block[1], shape.block[2], shape.shared_bytes, reinterpret_cast<CUstream>(stream), arguments);
    too_large = result == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return too_large ? CUDA_SUCCESS : result;
  });
  if (!too_large) return status;
  const Result<unsigned> fit = blocks_at_once(kernel, shape);
  return refuse_grid(shape, fit ? *fit : 0);
}

}  // namespace brant::port::memory
