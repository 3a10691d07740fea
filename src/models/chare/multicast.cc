// Calls of a section: down a tree over the ranks that have members, and there to each member.
#include <cstring>

#include "models/chare/calls.h"
#include "models/chare/gatherings.h"

namespace brant::detail {

void Calls::run_multicast(am::Message& message, const Envelope& envelope) {
  // As with broadcasts, data comes into memory of the runtime first: it is passed on from there, whoever waits.
  if (envelope.has_data() && data_header(message, envelope).state == DataState::numbers) {
    return landings_.stage(message, envelope, true);
  }
  const Gatherings& gatherings = collections_.gatherings();
  const GatheringId section{envelope.key, envelope.collection, 0};
  const Gatherings::Members* members = gatherings.members(section);
  if (members == nullptr) {
    if (collections_.has_gone(envelope.collection)) return latecomers_.came_too_late(message, envelope);
    return latecomers_.await_section(message, envelope);
  }
  Notes notes = notes_of(message);
  if ((notes.flags & Notes::kStarted) == 0) {
    notes.flags |= Notes::kStarted;
    set_notes(message, notes);
    const Gatherings::Branches branches = gatherings.branches(section, static_cast<std::int32_t>(envelope.reply));
    for (std::size_t i = 0; i < branches.count; ++i) sending_.send_copy(branches.rank[i], message, envelope);
    // The caller's memory is free sooner if several members here share a copy of it; one takes it as from any call.
    const bool callers_memory = message.wire.source < 0;
    if (envelope.has_data() && callers_memory && members->size() > 1) return landings_.stage(message, envelope, true);
  }
  Collection* const collection = collections_.find(envelope.collection);
  for (const auto& [key, next_round] : *members) call_member(*collection, key, message, envelope);
  if (envelope.has_data()) {  // our own use has ended well: letting the message go would tell the caller otherwise
    const DataHeader header = data_header(message, envelope);
    context_.lanes.release(place_as<DataOrigin>(header), Status::ok);
    set_data_header(message, envelope, {0, DataState::none, header.count});
  }
  messages_.count_out(message);
  ++activity_.calls_run;
  messages_.drop(message);
}

void Calls::call_member(Collection& collection, const ElementKey& key, const am::Message& message,
                        const Envelope& envelope) {
  Envelope call = envelope;
  call.kind = MessageKind::call;
  call.reply = 0;
  call.key = key.word[0];
  const std::size_t prefix = key.wide() ? kWideBytes : 0;
  if (prefix != 0) call.flags |= Envelope::kWide;
  am::Message& copy = messages_.make(call, message.bytes + prefix);
  if (prefix != 0) std::memcpy(copy.data, &key.word[1], kWideBytes);
  if (message.bytes != 0) std::memcpy(copy.data + prefix, message.data, message.bytes);
  // Who called, not who passed it on.
  copy.wire.source = message.wire.source < 0 ? message.wire.source : static_cast<std::int32_t>(envelope.reply);
  share_data(copy, call);
  set_notes(copy, {});
  messages_.count_in(copy);
  ++activity_.calls_sent;
  if (collection.places() != nullptr) [[unlikely]]
    return following_.send(collection, copy, call, key);
  queue_.push(copy, call);
}

}  // namespace brant::detail
