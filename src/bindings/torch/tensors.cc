#include "bindings/torch/tensors.h"

#include <ATen/Functions.h>

#include <string>

namespace brant::distributed {
namespace {

DataType type_of(at::ScalarType type) {
  switch (type) {
    case at::kByte: return DataType::u8;
    case at::kChar: return DataType::i8;
    case at::kShort: return DataType::i16;
    case at::kInt: return DataType::i32;
    case at::kLong: return DataType::i64;
    case at::kUInt16: return DataType::u16;
    case at::kUInt32: return DataType::u32;
    case at::kUInt64: return DataType::u64;
    case at::kHalf: return DataType::f16;
    case at::kBFloat16: return DataType::bf16;
    case at::kFloat:
    case at::kComplexFloat: return DataType::f32;
    case at::kDouble:
    case at::kComplexDouble: return DataType::f64;
    case at::kBool: return DataType::boolean;
    default: return DataType::bytes;
  }
}

ReduceOp op_of(c10d::ReduceOp::RedOpType op, bool logical) {
  using From = c10d::ReduceOp;
  switch (op) {
    case From::SUM: return logical ? ReduceOp::logical_or : ReduceOp::sum;
    case From::AVG: return ReduceOp::average;
    case From::PRODUCT: return logical ? ReduceOp::logical_and : ReduceOp::prod;
    case From::MIN: return logical ? ReduceOp::logical_and : ReduceOp::min;
    case From::MAX: return logical ? ReduceOp::logical_or : ReduceOp::max;
    case From::BAND: return logical ? ReduceOp::logical_and : ReduceOp::bit_and;
    case From::BOR: return logical ? ReduceOp::logical_or : ReduceOp::bit_or;
    case From::BXOR: return logical ? ReduceOp::logical_xor : ReduceOp::bit_xor;
    default: return ReduceOp::none;
  }
}

/// They lie in one run already, in this order.
bool is_one_run(const std::vector<at::Tensor>& blocks) {
  const auto* next = static_cast<const std::byte*>(blocks.front().const_data_ptr());
  for (const at::Tensor& block : blocks) {
    if (!block.is_contiguous() || block.const_data_ptr() != next) return false;
    next += block.nbytes();
  }
  return true;
}

at::Tensor room_for(const std::vector<at::Tensor>& blocks) {
  return at::empty({static_cast<std::int64_t>(blocks.size()) * blocks.front().numel()}, blocks.front().options());
}

}  // namespace

Reduction reduction_of(const at::Tensor& tensor, const c10d::ReduceOp& op, const char* what) {
  const at::ScalarType scalar = tensor.scalar_type();
  const bool is_complex = tensor.is_complex();
  const auto kind = static_cast<c10d::ReduceOp::RedOpType>(op);
  TORCH_CHECK(kind != c10d::ReduceOp::PREMUL_SUM, "brant: ", what,
              " does not multiply before it adds: scale the tensor, and use ReduceOp.SUM");
  TORCH_CHECK(!is_complex || kind == c10d::ReduceOp::SUM || kind == c10d::ReduceOp::AVG, "brant: ", what,
              " of complex numbers adds or averages only");
  const Reduction reduction{type_of(scalar), op_of(kind, scalar == at::kBool)};
  TORCH_CHECK(
      reduction.op != ReduceOp::none && reduction.type != DataType::bytes && can_reduce(reduction.type, reduction.op),
      "brant: ", what, " cannot combine elements of type ", c10::toString(scalar),
      " so: use another ReduceOp, or convert the tensor (to float32, say)");
  return reduction;
}

Buffer memory_of(const at::Tensor& tensor) {
  return {tensor.data_ptr(), tensor.nbytes(), tensor.is_cuda() ? MemoryKind::detect : MemoryKind::host};
}

void Tensors::require(const at::Tensor& tensor) {
  gpu_.require(tensor, what_);
  TORCH_CHECK(kept_.empty() || on_gpu_ == tensor.is_cuda(), "brant: ", what_,
              " of tensors on the CPU and on a GPU: move them to one of these");
  on_gpu_ = tensor.is_cuda();
}

void Tensors::note_use(const c10::Stream& stream) const {
  for (const std::vector<at::Tensor>* tensors : {&kept_, &filled_}) {
    for (const at::Tensor& tensor : *tensors) distributed::note_use(tensor, stream);
  }
}

Buffer Tensors::keep(at::Tensor tensor) {
  kept_.push_back(std::move(tensor));
  return memory_of(kept_.back());
}

Buffer Tensors::in(const at::Tensor& tensor) {
  require(tensor);
  return keep(tensor.contiguous());
}

Buffer Tensors::out(const at::Tensor& tensor, bool keeps) {
  require(tensor);
  if (tensor.is_contiguous()) return keep(tensor);
  filled_.push_back(tensor);
  const at::Tensor together = keeps ? tensor.contiguous() : at::empty(tensor.sizes(), tensor.options());
  copies_.emplace_back([tensor, together] { at::Tensor(tensor).copy_(together); });
  return keep(together);
}

std::optional<Buffer> Tensors::in_one_run(const std::vector<at::Tensor>& blocks) {
  for (const at::Tensor& block : blocks) require(block);
  if (!is_one_run(blocks)) return std::nullopt;
  kept_.insert(kept_.end(), blocks.begin(), blocks.end());
  const Buffer first = memory_of(blocks.front());
  return Buffer(first.data, blocks.size() * first.bytes, first.kind);
}

Buffer Tensors::in(const std::vector<at::Tensor>& blocks) {
  if (const std::optional<Buffer> run = in_one_run(blocks)) return *run;
  at::Tensor room = room_for(blocks);
  const std::int64_t length = blocks.front().numel();
  for (std::size_t i = 0; i < blocks.size(); ++i)
    room.narrow(0, static_cast<std::int64_t>(i) * length, length).copy_(blocks[i].reshape(-1));
  return keep(room);
}

Buffer Tensors::out(const std::vector<at::Tensor>& blocks) {
  if (const std::optional<Buffer> run = in_one_run(blocks)) return *run;
  const at::Tensor room = room_for(blocks);
  filled_.insert(filled_.end(), blocks.begin(), blocks.end());
  copies_.emplace_back([blocks, room] {
    const std::int64_t length = blocks.front().numel();
    for (std::size_t i = 0; i < blocks.size(); ++i)
      at::Tensor(blocks[i]).copy_(
          room.narrow(0, static_cast<std::int64_t>(i) * length, length).view(blocks[i].sizes()));
  });
  return keep(room);
}

void Tensors::finish() {
  const at::NoGradGuard plain;  // what comes is data, and no operation of the program
  for (const auto& copy : copies_) copy();
  copies_.clear();
}

}  // namespace brant::distributed
