// The seam of data arguments: the buffers that a call takes along, and where they have landed.
#include <utility>

#include <fmt/format.h>

#include "brant/chare/detail/data.h"
#include "models/chare/core.h"
#include "models/chare/data_call.h"

namespace brant::detail {

DataSources::DataSources(Core& core, const EntryInfo& entry, DataSource* sources, DataMeta* metas, std::size_t count)
    : core_(core) {
  lane::DataLanes& lanes = core.context().lanes;
  DataOrigin** end = &first_;
  for (std::size_t i = 0; i < count; ++i) {
    ConstBuffer& buffer = sources[i].buffer;
    Status status = lanes.engine().memory_kinds().resolve(buffer.data, buffer.bytes, buffer.kind);
    if (status == Status::ok && metas[i].host_only && !host_accessible(buffer.kind)) status = Status::wrong_kind;
    DataOrigin* origin = status == Status::ok ? lanes.take_origin() : nullptr;
    if (origin == nullptr) {
      if (status == Status::ok) status = Status::limit_reached;
      lanes.release(std::exchange(first_, nullptr), Status::canceled);
      throw Error(status, fmt::format("rank {}: data argument {} of a call of {}::{} ({} bytes of {} memory) cannot be "
                                      "sent: {}. {}",
                                      core.context().rank, i, entry.owner, entry.name, buffer.bytes,
                                      memory_kind_name(buffer.kind), status_text(status),
                                      metas[i].host_only ? "no_copy takes host memory; use device(...) for other kinds"
                                                         : "Pass a live buffer of the kind that it declares"));
    }
    metas[i].bytes = buffer.bytes;
    metas[i].kind = buffer.kind;
    origin->buffer = buffer;
    origin->free = sources[i].free;
    origin->promise = std::move(sources[i].promise);
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
