#include "ops/channel/shaped_posts.h"

#include <array>

#include "base/log.h"
#include "ops/channel/shaped_bytes.h"
#include "ops/channel/table.h"

namespace brant {
namespace {

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

Status ChannelSends::post(ConstBuffer source, const Shape& shape, Op& op) noexcept {
  op.result = {Status::ok, 0};
  if (!lies_within(shape, source.bytes)) return refuse_outside(end_, "a source", shape, source.bytes);
  if (const std::optional<ByteRun> run = single_run(shape)) return post(view_of(source, *run), op);
  Source what{source, Path::automatic, 0, &shape};
  Status status = engine_.memory_kinds().resolve(source.data, source.bytes, what.buffer.kind, &what.buffer_id);
  what.buffer.bytes = shape.bytes();
  if (status == Status::ok) look_for_landing(what.buffer);
  if (const Status refused = refusal(); refused != Status::ok) return refused;
  if (status == Status::ok) status = end_.paths().choose_for_shape(what.buffer.kind, shape.bytes(), what.path);
  if (status != Status::ok) return status;
  if (what.path == Path::shm && op.delivered.fire == nullptr && has_room(shape.bytes()) && send_packed(what)) {
    op.result.bytes = shape.bytes();
    return Status::ok;
  }
  return send(what, op);
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

Status receive_in_shape(ChannelEndpoint& end, Buffer landing, const Shape& shape, Op& op,
                        std::optional<std::uint64_t> number) noexcept {
  op.result = {Status::ok, 0};
  ChannelReceives& receives = end.receives();
  if (end.refused() != Status::ok) return end.refused();
  if (number && receives.has_landed(*number)) return Status::invalid_argument;
  if (!lies_within(shape, landing.bytes)) return refuse_outside(end, "a landing", shape, landing.bytes);
  if (const std::optional<ByteRun> run = single_run(shape)) {
    const Buffer whole = view_of(landing, *run);
    return number ? receives.post_at(*number, whole, op) : receives.post(whole, op);
  }
  ChannelReceives::Landing what{landing, Path::automatic, 0, &shape};
  Status status = end.engine().memory_kinds().resolve(landing.data, landing.bytes, what.buffer.kind, &what.buffer_id);
  what.buffer.bytes = shape.bytes();
  if (status == Status::ok) status = end.paths().choose_for_shape(what.buffer.kind, shape.bytes(), what.path);
  return status == Status::ok ? receives.start(what, op, number) : status;
}

}  // namespace brant
