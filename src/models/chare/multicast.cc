// Calls of a section: down a tree over the ranks that have members, and there to each member.
#include <cstring>

#include "models/chare/core.h"

namespace brant::detail {

void Core::run_multicast(am::Message& message, const Envelope& envelope) {
  // As with broadcasts, data comes into memory of the runtime first: it is passed on from there, whoever waits.
  if (envelope.has_data() && data_header(message, envelope).state == DataState::numbers) {
    return stage(message, envelope, true);
  }
  const TeamId section{envelope.key, envelope.collection, 0};
  const Teams::Members* members = teams_->members(section);
  if (members == nullptr) {
    if (has_gone(envelope.collection)) return came_too_late(message, envelope);
    return unknown_sections_[envelope.key].push_back(message);
  }
  Notes notes = notes_of(message);
  if ((notes.flags & Notes::kStarted) == 0) {
    notes.flags |= Notes::kStarted;
    set_notes(message, notes);
    const Teams::Branches branches = teams_->branches(section, static_cast<std::int32_t>(envelope.reply));
    for (std::size_t i = 0; i < branches.count; ++i) send_copy(branches.rank[i], message, envelope);
    // The caller's memory is free sooner if several members here share a copy of it; one takes it as from any call.
    const bool callers_memory = message.wire.source < 0;
    if (envelope.has_data() && callers_memory && members->size() > 1) return stage(message, envelope, true);
  }
  for (const auto& [key, next_round] : *members) call_member(key, message, envelope);
  if (envelope.has_data()) {  // our own use has ended well: letting the message go would tell the caller otherwise
    const DataHeader header = data_header(message, envelope);
    lanes_.release(place_as<DataOrigin>(header), Status::ok);
    set_data_header(message, envelope, {0, DataState::none, header.count});
  }
  count_out(message);
  ++calls_run_;
  drop(message);
}

void Core::call_member(const ElementKey& key, const am::Message& message, const Envelope& envelope) {
  Envelope call = envelope;
  call.kind = MessageKind::call;
  call.reply = 0;
  call.key = key.word[0];
  const std::size_t prefix = key.wide() ? kWideBytes : 0;
  if (prefix != 0) call.flags |= Envelope::kWide;
  am::Message& copy = make(call, message.bytes + prefix);
  if (prefix != 0) std::memcpy(copy.data, &key.word[1], kWideBytes);
  if (message.bytes != 0) std::memcpy(copy.data + prefix, message.data, message.bytes);
  // Who called, not who passed it on.
  copy.wire.source = message.wire.source < 0 ? message.wire.source : static_cast<std::int32_t>(envelope.reply);
  share_data(copy, call);
  set_notes(copy, {});
  count_in(copy);
  ++calls_sent_;
  enqueue(copy, call);
}

void Core::section_known(std::uint64_t section) {
  const auto early = unknown_sections_.find(section);
  if (early == unknown_sections_.end()) return;
  am::MessageList list = early->second;
  unknown_sections_.erase(early);
  run_next(list);
}

}  // namespace brant::detail
