#include "models/chare/data_calls.h"

#include <utility>

namespace brant::detail {

DataCall& DataCalls::open(am::Message& message, std::size_t count, DataLandings& landings,
                          void (*ended)(DataPart&, Status) noexcept) {
  DataCall* call = pool_.take();
  if (call == nullptr) throw Error(pool_.refusal(), "there is no record for a call that waits for its data");
  call->landings = &landings;
  call->message = &message;
  calls_.push_back(*call);
  DataPart** end = &call->parts;
  for (std::size_t i = 0; i < count; ++i) {
    DataPart* part = context_.lanes.take_part();
    if (part == nullptr) {
      const Status why = context_.lanes.part_refusal();
      close(*call);
      throw Error(why, "there is no record for a data argument that comes");
    }
    part->owner = call;
    part->ended = ended;
    *end = part;
    end = &part->following;
  }
  return *call;
}

void DataCalls::close(DataCall& call) noexcept {
  while (call.parts != nullptr) {
    DataPart* part = std::exchange(call.parts, call.parts->following);
    context_.lanes.give_back(*part);
  }
  calls_.remove(call);
  pool_.give_back(&call);
}

void DataCalls::discard(am::Message& message) noexcept {
  const auto envelope = message.header<Envelope>();
  const DataHeader header = data_header(message, envelope);
  set_data_header(message, envelope, {0, DataState::none, header.count});
  switch (header.state) {
    case DataState::numbers:
      return context_.lanes.swallow(message.peer, header.place, data_metas(message, envelope), header.count);
    case DataState::origins: return context_.lanes.release(place_as<DataOrigin>(header), Status::canceled);
    case DataState::staging: place_as<DataCall>(header)->message = nullptr; return;  // the record goes with the data
    case DataState::landed: return close(*place_as<DataCall>(header));
    default: return;
  }
}

bool DataCalls::put_behind(const ChareBase& chare, am::Message& message, const Envelope& envelope) noexcept {
  if (envelope.has_data() && data_header(message, envelope).state == DataState::landed) return false;  // came before
  for (DataCall* call = calls_.front(); call != nullptr; call = calls_.next(*call)) {
    if (call->chare != &chare || call->remaining == 0) continue;
    call->after.push_back(message);
    return true;
  }
  return false;
}

bool DataCalls::put_behind(const Collection& collection, am::Message& message) noexcept {
  for (DataCall* call = calls_.front(); call != nullptr; call = calls_.next(*call)) {
    if (call->chare == nullptr || call->remaining == 0 || &Collection::of(*call->chare) != &collection) continue;
    Collection::leaving_mark(*call->chare).destroyed = true;
    call->after.push_back(message);
    return true;
  }
  return false;
}

const DataCall* DataCalls::first_coming() const noexcept {
  const DataCall* call = calls_.front();
  while (call != nullptr && (call->remaining == 0 || call->message == nullptr)) call = calls_.next(*call);
  return call;
}

std::size_t DataCalls::coming() const noexcept {
  std::size_t count = 0;
  for (const DataCall* call = calls_.front(); call != nullptr; call = calls_.next(*call)) {
    count += call->remaining != 0 ? 1 : 0;
  }
  return count;
}

}  // namespace brant::detail
