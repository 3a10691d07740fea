// The seam of data arguments: the buffers that a call takes along, and where they have landed.
#include "ops/lane/data_sources.h"

#include <utility>

#include "brant/chare/detail/data.h"
#include "models/chare/core.h"
#include "models/chare/data_call.h"

namespace brant::detail {

DataSources::DataSources(Core& core, const EntryInfo& entry, DataSource* sources, DataMeta* metas, std::size_t count)
    : core_(core), first_(lane::take_sources(core.context().lanes, entry.owner, entry.name, sources, metas, count)) {}

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
