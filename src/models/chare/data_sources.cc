// The seam of data arguments: the buffers that a call takes along, and where they have landed.
#include <utility>

#include <fmt/format.h>

#include "brant/chare/detail/data.h"
#include "models/chare/core.h"
#include "models/chare/data_call.h"

namespace brant::detail {

namespace {

/// Null: `why` says so.
DataOrigin* take_origin(lane::DataLanes& lanes, const std::optional<Shape>& shape, Status& why) noexcept {
  DataOrigin* const origin = lanes.take_origin();
  if (origin == nullptr) why = lanes.origin_refusal();
  if (origin == nullptr || !shape) return origin;
  origin->shape = lanes.keep(*shape);
  if (origin->shape != nullptr) return origin;
  why = lanes.shape_refusal();
  lanes.release_one(*origin, Status::canceled);
  return nullptr;
}

std::string cure(const DataSource& source, const DataMeta& meta, Status status) {
  if (status == Status::limit_reached) return "Wait for some that are under way";
  if (status == Status::no_memory) return "Free some, or wait for those that are under way";
  if (meta.host_only) return "no_copy takes host memory; use device(...) for other kinds";
  if (source.shape && source.shape->end() > source.buffer.bytes) {
    return fmt::format("Its shape ends at byte {}: pass all of the memory that it is laid on", source.shape->end());
  }
  return "Pass a live buffer of the kind that it declares";
}

/// Finds out the kind.
Status judge(lane::DataLanes& lanes, DataSource& source, const DataMeta& meta) noexcept {
  ConstBuffer& buffer = source.buffer;
  const Status status = lanes.engine().memory_kinds().resolve(buffer.data, buffer.bytes, buffer.kind);
  if (status != Status::ok) return status;
  if (meta.host_only && !host_accessible(buffer.kind)) return Status::wrong_kind;
  const bool outside = source.shape && source.shape->bytes() != 0 && source.shape->end() > buffer.bytes;
  return outside ? Status::invalid_argument : Status::ok;
}

}  // namespace

DataSources::DataSources(Core& core, const EntryInfo& entry, DataSource* sources, DataMeta* metas, std::size_t count)
    : core_(core) {
  lane::DataLanes& lanes = core.context().lanes;
  DataOrigin** end = &first_;
  for (std::size_t i = 0; i < count; ++i) {
    DataSource& source = sources[i];
    const ConstBuffer& buffer = source.buffer;
    Status status = judge(lanes, source, metas[i]);
    DataOrigin* origin = status == Status::ok ? take_origin(lanes, source.shape, status) : nullptr;
    if (origin == nullptr) {
      lanes.release(std::exchange(first_, nullptr), Status::canceled);
      throw Error(status,
                  fmt::format("rank {}: data argument {} of a call of {}::{} ({} bytes of {} memory) cannot be "
                              "sent: {}. {}",
                              core.context().rank, i, entry.owner, entry.name, buffer.bytes,
                              memory_kind_name(buffer.kind), status_text(status), cure(source, metas[i], status)));
    }
    metas[i].bytes = source.shape ? source.shape->bytes() : buffer.bytes;
    metas[i].kind = buffer.kind;
    origin->buffer = buffer;
    origin->free = source.free;
    origin->promise = std::move(source.promise);
    *end = origin;
    end = &origin->following;
  }
}

DataSources::~DataSources() { core_.context().lanes.release(first_, Status::canceled); }

void DataSources::hand_over(Outgoing& outgoing) noexcept {
  auto& message = *static_cast<am::Message*>(outgoing.message);
  auto envelope = message.header<Envelope>();
  envelope.flags |= Envelope::kData;
  message.set_header(envelope);
  first_ = nullptr;
}

Buffer landed_data(const Invocation& invocation, std::size_t index, LandingBlock** block) noexcept {
  const auto& message = *static_cast<const am::Message*>(invocation.message);
  DataPart* part = place_as<DataCall>(data_header(message, message.header<Envelope>()))->parts;
  while (index-- != 0) part = part->following;
  if (block != nullptr) *block = std::exchange(part->block, nullptr);
  return part->landing;
}

}  // namespace brant::detail
