#include "port/memory/cuda/cuda_context.h"

#include <unistd.h>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::port::memory {

CudaContext::CudaContext(const CudaDriver& driver, int ordinal, const StayingKernels& staying_kernels)
    : driver_(driver), staying_kernels_(staying_kernels), process_(::getpid()) {
  CUresult result = driver_.device_get(&device_, ordinal);
  if (result == CUDA_SUCCESS) result = driver_.primary_context_retain(&context_, device_);
  if (result == CUDA_SUCCESS) return;
  const Status status = cuda_status(driver_, result, "cuDevicePrimaryCtxRetain");
  throw Error(
      status,
      fmt::format(
          "GPU {}: no context: {}. Is its compute mode exclusive and another process on it, or its memory full? "
          "nvidia-smi shows both",
          ordinal, cuda_error_text(driver_, result)));
}

CudaContext::~CudaContext() {
  // At process exit the driver may be closed before us: whatever it answers, there is nothing left to do.
  if (own_process()) driver_.primary_context_release(device_);
}

bool CudaContext::own_process() const noexcept { return ::getpid() == process_; }

ContextScope::ContextScope(const CudaContext& context) noexcept : driver_(context.driver()) {
  CUcontext current = nullptr;
  result_ = driver_.context_get_current(&current);
  if (result_ != CUDA_SUCCESS || current == context.handle()) return;
  if (current == nullptr) {
    result_ = driver_.context_set_current(context.handle());
  } else {
    result_ = driver_.context_push(context.handle());
    pushed_ = result_ == CUDA_SUCCESS;
  }
}

ContextScope::~ContextScope() {
  CUcontext ours = nullptr;
  if (pushed_) driver_.context_pop(&ours);
}

CaptureScope::CaptureScope(const CudaContext& context) noexcept : driver_(context.driver()) {
  driver_.exchange_capture_mode(&mode_);
}

CaptureScope::~CaptureScope() { driver_.exchange_capture_mode(&mode_); }

}  // namespace brant::port::memory
