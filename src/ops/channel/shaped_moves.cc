// The parts of ChannelMoves and ChannelPaths that know of shapes.
#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/shaped_bytes.h"
#include "ops/channel/table.h"

namespace brant {

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

bool ChannelMoves::stop_staging(Transfer& transfer) noexcept { return end_.table().mover().withdraw(*transfer.move); }

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
  if (const std::optional<ByteRun> run = single_run(shape)) {
    return of(ConstBuffer(static_cast<const std::byte*>(source.data) + run->offset, run->bytes, source.kind), path);
  }
  const Status known = end_.engine().memory_kinds().resolve(source.data, source.bytes, source.kind);
  return known == Status::ok ? choose_for_shape(source.kind, shape.bytes(), path) : known;
}

}  // namespace brant
