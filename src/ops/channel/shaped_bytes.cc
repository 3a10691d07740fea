#include "ops/channel/shaped_bytes.h"

#include "ops/mover/mover.h"

namespace brant {
namespace {

StepEnd users_end(const Transfer& transfer, std::size_t position) noexcept {
  StepEnd end{MoveEnd(transfer.buffer.data, transfer.buffer.kind)};
  if (const OwnShape* shapes = transfer.own_shape()) {
    end.shape = transfer.is_send ? &shapes->from : &shapes->to;
    end.mark = &shapes->mark;
  }
  end.advance(position);
  return end;
}

StepEnd end_of_ours(const std::byte* bytes) noexcept { return {MoveEnd(bytes, MemoryKind::host)}; }

}  // namespace

std::optional<ByteRun> single_run(const Shape& shape) noexcept {
  if (shape.bytes() == 0) return ByteRun{};
  if (shape.form() == Shape::Form::contiguous) return ByteRun{shape.first(), shape.bytes()};
  if (shape.form() == Shape::Form::indexed && shape.runs().size() == 1) return shape.runs().front();
  return std::nullopt;
}

bool lies_within(const Shape& shape, std::size_t buffer_bytes) noexcept {
  return shape.bytes() == 0 || (shape.lowest() <= shape.end() && shape.end() <= buffer_bytes);
}

void copy_out(const Transfer& send, std::size_t position, std::span<std::byte> to) noexcept {
  CpuCopier::copy(end_of_ours(to.data()), users_end(send, position), to.size());
}

void copy_in(const Transfer& receive, std::size_t position, std::span<const std::byte> from) noexcept {
  CpuCopier::copy(users_end(receive, position), end_of_ours(from.data()), from.size());
}

void copy_back(const Transfer& receive, std::span<std::byte> to) noexcept {
  CpuCopier::copy(end_of_ours(to.data()), users_end(receive, 0), to.size());
}

}  // namespace brant
