#pragma once

#include <sys/types.h>

#include "port/memory/cuda/cuda_driver.h"
#include "port/memory/staying_kernels.h"

namespace brant::port::memory {

/// Holds the primary context of one device: the one the CUDA runtime, PyTorch and UCX use too, so that their pointers
/// are ours.
class CudaContext {
 public:
  /// Retains the primary context, which creates it if this is its first user. Throws Error.
  CudaContext(const CudaDriver& driver, int ordinal, const StayingKernels& staying_kernels);
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  ~CudaContext();

  [[nodiscard]] const CudaDriver& driver() const noexcept { return driver_; }
  [[nodiscard]] CUdevice device() const noexcept { return device_; }
  [[nodiscard]] const StayingKernels& staying_kernels() const noexcept { return staying_kernels_; }
  [[nodiscard]] CUcontext handle() const noexcept { return context_; }
  /// False in a child made by fork: the driver refuses to work there, and what the parent opened is the parent's.
  [[nodiscard]] bool own_process() const noexcept;
  Status status(CUresult result, const char* call) const noexcept { return cuda_status(driver_, result, call); }

 private:
  const CudaDriver& driver_;
  const StayingKernels& staying_kernels_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  const pid_t process_;
};

/// Makes a context current on this thread for the length of a scope. A thread without a context keeps it, as with the
/// CUDA runtime; a thread that works on another context gets that one back. Costs one driver call (some ten
/// nanoseconds) where the context is current already. What is current is asked each time and not remembered: the
/// program may change it at any moment.
class ContextScope {
 public:
  explicit ContextScope(const CudaContext& context) noexcept;
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope();

  /// CUDA_SUCCESS if driver calls may follow.
  [[nodiscard]] CUresult result() const noexcept { return result_; }

 private:
  const CudaDriver& driver_;
  CUresult result_ = CUDA_SUCCESS;
  bool pushed_ = false;
};

/// Lets this thread do, for the length of a scope, what a capture in any thread of the process forbids to all of them:
/// while a program captures a graph in mode "global", which is PyTorch's, to ask for an event or to allocate is an
/// error that ends the capture. brant's own events and memory are no part of it. Costs two calls of the driver, which
/// touch this thread alone.
class CaptureScope {
 public:
  explicit CaptureScope(const CudaContext& context) noexcept;
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;
  ~CaptureScope();

 private:
  const CudaDriver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// Runs `call` (returning CUresult) with the context current, and says what came of it under `name`.
template <typename Call>
Status in_context(const CudaContext& context, const char* name, Call&& call) noexcept {
  const ContextScope scope(context);
  return context.status(scope.result() == CUDA_SUCCESS ? call() : scope.result(), name);
}

/// The same for what captures forbid: questions about events and streams, and all that makes, maps or frees memory.
template <typename Call>
Status beside_captures(const CudaContext& context, const char* name, Call&& call) noexcept {
  const CaptureScope scope(context);
  return in_context(context, name, call);
}

}  // namespace brant::port::memory
