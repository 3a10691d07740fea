#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "brant/core/stream.h"

namespace brant::distributed {

/// The GPU that a job works with, as PyTorch has it, or none. By PyTorch's interface for devices of any kind: what is
/// compiled knows nothing of CUDA, and loads where there is none.
class Gpu {
 public:
  explicit Gpu(int ordinal) noexcept : ordinal_(ordinal) {}

  [[nodiscard]] c10::Device device() const;
  /// The calling thread's, on which it computes.
  [[nodiscard]] c10::Stream current() const;
  /// One of PyTorch's pool, which runs beside others.
  [[nodiscard]] c10::Stream another() const;

  /// Throws unless the tensor is dense, and lies in host memory or on this GPU.
  void require(const at::Tensor& tensor, const char* what) const;

 private:
  int ordinal_;
};

/// For calls of brant.
StreamHandle handle_of(const c10::Stream& stream);
/// What is queued there is recorded for a graph, and does not run now.
bool is_captured(const c10::Stream& stream);
/// The tensor's memory is not given to others before the stream has passed what is queued there so far.
void note_use(const at::Tensor& tensor, const c10::Stream& stream);
/// What `first` has to do so far comes before what is queued on `second` from here on.
void put_in_order(const c10::Stream& first, const c10::Stream& second);

}  // namespace brant::distributed
