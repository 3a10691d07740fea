#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <utility>
#include <vector>

#include "bindings/torch/gpu.h"
#include "brant/brant.h"
#include "brant/coll/team.h"

namespace brant::distributed {

/// How elements of a tensor are combined: complex ones are two each, truth values by logic.
struct Reduction {
  DataType type = DataType::bytes;
  ReduceOp op = ReduceOp::none;
};
/// Throws what PyTorch throws for arguments: no such combination, and the cure.
Reduction reduction_of(const at::Tensor& tensor, const c10d::ReduceOp& op, const char* what);

Buffer memory_of(const at::Tensor& tensor);

/// Tensors of one call as memory that brant reads and writes: those whose elements do not lie together, and lists that
/// shall be one block behind the other, are copied before and after.
class Tensors {
 public:
  Tensors(const char* what, const Gpu& gpu) noexcept : what_(what), gpu_(gpu) {}

  /// Read.
  Buffer in(const at::Tensor& tensor);
  /// Written; with `keeps`, read before.
  Buffer out(const at::Tensor& tensor, bool keeps);
  /// Equal blocks, one behind the other.
  Buffer in(const std::vector<at::Tensor>& blocks);
  Buffer out(const std::vector<at::Tensor>& blocks);
  [[nodiscard]] const char* what() const noexcept { return what_; }

  /// They lie on the GPU, all of them; or the call is one of the GPU without having any.
  [[nodiscard]] bool on_gpu() const noexcept { return on_gpu_; }
  void put_on_gpu() noexcept { on_gpu_ = true; }
  /// Their memory is in use by a stream.
  void note_use(const c10::Stream& stream) const;

  /// What is to be done when the bytes have come: called once, of tensors on the GPU with the stream for it current.
  void finish();

 private:
  void require(const at::Tensor& tensor);
  Buffer keep(at::Tensor tensor);
  /// Blocks that lie one behind the other already.
  std::optional<Buffer> in_one_run(const std::vector<at::Tensor>& blocks);

  const char* what_;
  const Gpu gpu_;
  bool on_gpu_ = false;
  std::vector<at::Tensor> kept_;
  std::vector<at::Tensor> filled_;  ///< By `copies_`.
  std::vector<std::function<void()>> copies_;
};

}  // namespace brant::distributed
