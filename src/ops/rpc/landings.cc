#include "ops/rpc/landings.h"

#include <utility>

#include <fmt/format.h>

#include "ops/rpc/call_header.h"
#include "ops/rpc/data_block.h"
#include "ops/rpc/end_program.h"

namespace brant::remote {

using lane::DataMeta;
using lane::DataOrigin;
using lane::DataPart;
using lane::LandingBlock;

bool Landings::is_sound(const am::Message& message) const noexcept {
  const std::size_t count = message.header<CallHeader>().data;
  if (message.bytes < data_block_bytes(count)) return false;
  const detail::DataHeader header = data_header(message);
  const bool own = message.peer == carrier_.self().value;
  if (header.count != count) return false;
  if (header.state != (own ? detail::DataState::origins : detail::DataState::numbers)) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const DataMeta& meta = data_metas(message)[i];
    if (static_cast<unsigned>(meta.kind) >= unsigned{kMemoryKindCount} || meta.kind == MemoryKind::detect) return false;
    if (meta.bytes > am::MessagePool::kPayloadMax) return false;
  }
  return true;
}

bool Landings::take(am::Message& message) noexcept {
  if (!is_sound(message)) return false;
  const detail::DataHeader header = data_header(message);
  Call* call = calls_.take();
  if (call == nullptr) {
    end_program(calls_.refusal(), fmt::format("rank {}: no record for the data of a remote call from rank {}",
                                              carrier_.self().value, message.peer));
  }
  call->landings = this;
  call->message = &message;
  open_.push_back(*call);
  set_data_header(message, {place_of(call), detail::DataState::landed, header.count});
  const bool own = header.state == detail::DataState::origins;
  auto* origin = own ? place_as<DataOrigin>(header) : nullptr;
  DataPart** end = &call->parts;
  ++call->remaining;  // for this function: no part that ends within it completes the call
  for (std::size_t i = 0; i < header.count; ++i) {
    DataOrigin* mine = origin;
    if (origin != nullptr) origin = origin->following;
    begin(*call, data_metas(message)[i], mine, header.place + i, end);
  }
  if (--call->remaining == 0) came_(context_, message);
  return true;
}

/// One argument: from `origin` in this process, or else from the message's sender under `number`.
void Landings::begin(Call& call, const DataMeta& meta, DataOrigin* origin, std::uint64_t number,
                     DataPart**& end) noexcept {
  lane::LandingPool& pool = lanes_.landings();
  const auto bytes = static_cast<std::size_t>(meta.bytes);
  DataPart* part = lanes_.take_part();
  if (part == nullptr) return refuse(call, meta, origin, number, lanes_.part_refusal());
  const Result<LandingBlock*> block = pool.take(pool.landing_kind(meta.kind, meta.host_only), bytes);
  if (!block) {
    lanes_.give_back(*part);
    return refuse(call, meta, origin, number, block.status());
  }
  part->block = *block;
  part->landing = part->block->view(bytes);
  part->owner = &call;
  part->ended = &Landings::part_ended;
  *end = part;
  end = &part->following;
  Status status = Status::ok;
  if (origin != nullptr) {
    part->origin = origin;
    status = lanes_.copy(*part);
  } else {
    part->from = call.message->peer;
    part->number = number;
    status = lanes_.receive(*part, part->from, number);
    const bool came = status == Status::ok || status == Status::in_progress || status == Status::truncated;
    if (!came) return refuse(call, meta, nullptr, number, status);
  }
  if (status != Status::in_progress) return settle(*part, status);
  part->under_way = true;
  ++call.remaining;
}

/// It cannot land, and is received all the same.
void Landings::refuse(Call& call, const DataMeta& meta, DataOrigin* origin, std::uint64_t number, Status why) noexcept {
  if (call.status == Status::ok) call.status = why;
  if (origin != nullptr) return lanes_.release_one(*origin, why);
  const std::int32_t from = call.message->peer;
  if (why == Status::peer_lost) return;
  lanes_.swallow(from, number, &meta, 1);
  const lane::DataLanes::Break& broken = lanes_.broken();
  if (broken.status == Status::ok || broken.status == Status::peer_lost) return;
  end_program(broken.status, fmt::format("rank {} could not take in {} bytes of {} memory for a remote call from rank "
                                         "{}, and all data behind them would wait for ever: {}",
                                         carrier_.self().value, meta.bytes, memory_kind_name(meta.kind), from,
                                         status_text(broken.status)));
}

void Landings::settle(DataPart& part, Status status) noexcept {
  part.under_way = false;
  if (part.origin != nullptr) lanes_.release_one(*std::exchange(part.origin, nullptr), status);
  auto& call = *static_cast<Call*>(part.owner);
  if (call.status == Status::ok) call.status = status;
}

void Landings::part_ended(DataPart& part, Status status) noexcept {
  auto& call = *static_cast<Call*>(part.owner);
  Landings& self = *call.landings;
  self.settle(part, status);
  if (--call.remaining == 0) self.came_(self.context_, *call.message);
}

Status Landings::outcome(const am::Message& message) noexcept { return place_as<Call>(data_header(message))->status; }

Buffer Landings::landed(const am::Message& message, std::size_t index, LandingBlock** block) noexcept {
  DataPart* part = place_as<Call>(data_header(message))->parts;
  while (index-- != 0) part = part->following;
  if (block != nullptr) *block = std::exchange(part->block, nullptr);
  return part->landing;
}

void Landings::close(am::Message& message) noexcept {
  Call& call = *place_as<Call>(data_header(message));
  while (DataPart* part = call.parts) {
    call.parts = part->following;
    if (part->under_way) {
      part->ended = nullptr;  // goes back when it has come
    } else {
      lanes_.give_back(*part);
    }
  }
  open_.remove(call);
  calls_.give_back(&call);
}

void Landings::abandon() noexcept {
  while (Call* call = open_.front()) {
    am::Message& message = *call->message;
    close(message);
    carrier_.messenger().release(message);
  }
}

}  // namespace brant::remote
