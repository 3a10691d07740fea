#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <utility>
#include <vector>

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

/// Throws unless it is dense and lies in host memory.
void require_host(const at::Tensor& tensor, const char* what);

Buffer memory_of(const at::Tensor& tensor);

/// Tensors of one call as memory that brant reads and writes: those whose elements do not lie together, and lists that
/// shall be one block behind the other, are copied before and after.
class Tensors {
 public:
  explicit Tensors(const char* what) noexcept : what_(what) {}

  /// Read.
  Buffer in(const at::Tensor& tensor);
  /// Written; with `keeps`, read before.
  Buffer out(const at::Tensor& tensor, bool keeps);
  /// Equal blocks, one behind the other.
  Buffer in(const std::vector<at::Tensor>& blocks);
  Buffer out(const std::vector<at::Tensor>& blocks);
  [[nodiscard]] const char* what() const noexcept { return what_; }

  /// What is to be done when the bytes have come: called once.
  void finish();

 private:
  Buffer keep(at::Tensor tensor);
  /// Blocks that lie one behind the other already.
  std::optional<Buffer> in_one_run(const std::vector<at::Tensor>& blocks);

  const char* what_;
  std::vector<at::Tensor> kept_;
  std::vector<std::function<void()>> copies_;
};

}  // namespace brant::distributed
