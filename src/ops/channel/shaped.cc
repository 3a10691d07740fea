// The parts of an end that know of shapes: its posts, its paths, and the copies that it makes.
#include "ops/channel/shaped.h"

#include <array>

#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"

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

Status refuse_outside(const ChannelEndpoint& end, const char* what, const Shape& shape, std::size_t bytes) noexcept {
  log::error(
      "channel {} to rank {}: the shape of {} ends at byte {} of a buffer of {}. A shape must lie inside its buffer: "
      "pass all of the memory that it is laid on",
      end.id().value, end.peer().rank.value, what, shape.end(), bytes);
  return Status::invalid_argument;
}

template <typename View>
View view_of(const View& buffer, const ByteRun& run) noexcept {
  using Byte = std::conditional_t<std::is_same_v<View, Buffer>, std::byte, const std::byte>;
  return {run.bytes == 0 ? buffer.data : static_cast<Byte*>(buffer.data) + run.offset, run.bytes, buffer.kind};
}

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

void copy_out(const Transfer& transfer, std::size_t position, std::span<std::byte> to) noexcept {
  CpuCopier::copy(end_of_ours(to.data()), users_end(transfer, position), to.size());
}

void copy_in(const Transfer& transfer, std::size_t position, std::span<const std::byte> from) noexcept {
  CpuCopier::copy(users_end(transfer, position), end_of_ours(from.data()), from.size());
}

// Posts
// ----------------------------------------------------------------------------------------------------------------

Status ChannelSends::post(ConstBuffer source, const Shape& shape, Op& op, AskedMemory answer) noexcept {
  op.result = {Status::ok, 0};
  if (!lies_within(shape, source.bytes)) return refuse_outside(end_, "a source", shape, source.bytes);
  const std::optional<ByteRun> run = single_run(shape);
  if (run) return post(view_of(source, *run), op, answer);
  return begin({.buffer = source, .memory = answer, .shape = &shape}, op);
}

/// As `send_at_once`.
bool ChannelSends::send_packed(const Source& source) noexcept {
  std::array<std::byte, kOfferedBytes> packed;
  const std::size_t bytes = source.buffer.bytes;
  if (bytes > packed.size() || !host_accessible(source.buffer.kind)) return false;
  CpuCopier::copy({MoveEnd(packed.data(), MemoryKind::host)},
                  {MoveEnd(source.buffer.data, source.buffer.kind), source.shape}, bytes);
  return send_at_once(ConstBuffer(packed.data(), bytes, MemoryKind::host));
}

Status ChannelReceives::post(Buffer landing, const Shape& shape, Op& op, std::optional<std::uint64_t> number,
                             AskedMemory answer) noexcept {
  op.result = {Status::ok, 0};
  if (end_.refused() != Status::ok) return end_.refused();
  if (!lies_within(shape, landing.bytes)) return refuse_outside(end_, "a landing", shape, landing.bytes);
  const std::optional<ByteRun> run = single_run(shape);
  if (run) return post(view_of(landing, *run), op, number, answer);
  return begin({.buffer = landing, .memory = answer, .shape = &shape}, op, number);
}

// Paths
// ----------------------------------------------------------------------------------------------------------------

Status ChannelPaths::choose_for_shape(MemoryKind kind, std::size_t bytes, Path& path) noexcept {
  // What a link carries in pieces is copied twice, which is no more than packing it for another way.
  const Status status = choose(kind, bytes, path, end_.linked());
  if (status != Status::ok || host_accessible(kind)) return status;
  if (forced_ == Path::courier) {
    log::error(
        "channel {} to rank {}: the courier copies one run, and cannot carry {} bytes of {} memory that lie in "
        "several. Use BRANT_PATH=auto or copy_engine",
        end_.id().value, end_.peer().rank.value, bytes, memory_kind_name(kind));
    return Status::not_supported;
  }
  const bool by_device = path == Path::courier || path == Path::copy_engine;
  path = by_device ? Path::copy_engine : Path::staged;
  return Status::ok;
}

Status ChannelPaths::of(ConstBuffer source, const Shape& shape, Path& path) noexcept {
  if (!lies_within(shape, source.bytes)) return Status::invalid_argument;
  if (const std::optional<ByteRun> run = single_run(shape)) return of(view_of(source, *run), path);
  const Status known = end_.engine().memory_kinds().resolve(source.data, source.bytes, source.kind);
  return known == Status::ok ? choose_for_shape(source.kind, shape.bytes(), path) : known;
}

// Copies
// ----------------------------------------------------------------------------------------------------------------

Status ChannelMoves::lay(Transfer& transfer, const Shape& shape) noexcept {
  if (const Status taken = take(transfer); taken != Status::ok) return taken;
  ChannelPools& pools = end_.table().pools();
  OwnShape* shapes = pools.shapes.take();
  if (shapes == nullptr) return pools.shapes.refusal();
  (transfer.is_send ? shapes->from : shapes->to) = shape;
  transfer.move->own_shape = shapes;
  return Status::ok;
}

/// Of host memory the records of a link carry what was packed into them; a device writes its own shape into a mapped
/// landing. The network takes one run, and so does who copies a message from where it is, or writes it to where it was
/// told.
bool ChannelMoves::shape_needs_stage(Transfer& transfer) const noexcept {
  if (host_accessible(transfer.buffer.kind)) {
    return !end_.linked() || (transfer.is_send && transfer.path != Path::shm);
  }
  if (transfer.is_send && end_.linked() && transfer.path == Path::copy_engine) return false;
  transfer.path = Path::staged;
  return true;
}

}  // namespace brant
