// The calls of a section are in multicast.cc.
#include "models/chare/calls.h"

#include <algorithm>

#include "core/batch_time.h"
#include "models/chare/busy_mark.h"
#include "models/chare/entry_trace.h"
#include "models/chare/mail.h"

namespace brant::detail {
namespace {

constexpr unsigned kBroadcastBatch = 256;  // elements between looks at the network, at most

}  // namespace

Calls::Calls(const ProgramContext& context, Activity& activity, Collections& collections, DataCalls& data_calls,
             Messages& messages, Sending& sending, ReadyQueue& queue, DataLandings& landings, ChannelDesk& desk,
             Answers& answers, Latecomers& latecomers, Following& following, Moving& moving) noexcept
    : context_(context),
      activity_(activity),
      collections_(collections),
      data_calls_(data_calls),
      messages_(messages),
      sending_(sending),
      queue_(queue),
      landings_(landings),
      desk_(desk),
      answers_(answers),
      latecomers_(latecomers),
      following_(following),
      moving_(moving) {}

void Calls::run_call(am::Message& message, const Envelope& envelope) {
  Collection* collection = collections_.ready(envelope.collection);
  if (collection == nullptr) [[unlikely]]
    return latecomers_.await_creation(message, envelope);
  const ElementKey key = key_of(message, envelope);
  ChareBase* chare = collection->find(key);
  if (chare == nullptr) [[unlikely]] {
    if (following_.find(*collection, message, envelope, key)) return;
    return latecomers_.await_element(*collection, message, envelope, key);
  }
  const auto* entry = context_.registry.find<EntryInfo>(envelope.number, RegisteredKind::entry);
  if (entry == nullptr) [[unlikely]]
    throw Error(Status::internal, "a message names an entry that is none");
  if (Collection::leaving(*chare).any()) [[unlikely]] {
    if (moving_.hold(*collection, message, envelope, key) || data_calls_.put_behind(*chare, message, envelope)) return;
  }
  if (envelope.has_data() && !data_ready(*chare, *entry, message, envelope)) return;
  messages_.count_out(message);
  if (envelope.counted()) ++activity_.calls_run;
  invoke(*chare, *entry, message, envelope, arguments_of(context_.chares, message, envelope));
  messages_.drop(message);
}

void Calls::run_broadcast(am::Message& message, const Envelope& envelope) {
  Collection* collection = collections_.ready(envelope.collection);
  if (collection == nullptr) return latecomers_.await_creation(message, envelope);
  const auto* entry = context_.registry.find<EntryInfo>(envelope.number, RegisteredKind::entry);
  if (entry == nullptr) throw Error(Status::internal, "a broadcast names an entry that is none");
  Notes notes = notes_of(message);
  // As calls, broadcasts keep their order also where those before this one are still on their way to what moved.
  const bool by_calls = collection->places() != nullptr && (notes.flags & Notes::kStarted) == 0;
  if (envelope.has_data() || by_calls) [[unlikely]]
    return fan_out(*collection, message, envelope);
  if ((notes.flags & Notes::kStarted) == 0) {
    notes.flags |= Notes::kStarted;
    notes.end_slot = static_cast<std::uint32_t>(collection->slots().size());  // later ones are not meant
  }
  set_notes(message, notes);
  const std::uint32_t batch_end = std::min(notes.end_slot, notes.next_slot + kBroadcastBatch);
  std::uint32_t slot = notes.next_slot;
  BatchTime time;
  for (unsigned run = 0; slot < batch_end && !time.over(run); ++slot) {
    ChareBase* chare = collection->slots()[slot];
    if (chare == nullptr) continue;
    invoke(*chare, *entry, message, envelope, arguments_of(context_.chares, message, envelope));
    ++run;
  }
  if (slot < batch_end) activity_.time_used_up = true;
  if (slot < notes.end_slot) {
    notes = notes_of(message);  // coroutines may hold it now
    notes.next_slot = slot;
    set_notes(message, notes);
    return queue_.push_front(message);
  }
  messages_.count_out(message);
  ++activity_.calls_run;
  messages_.drop(message);
}

void Calls::fan_out(Collection& collection, am::Message& message, const Envelope& envelope) {
  if (collection.places() != nullptr) {  // elements of this home that live elsewhere
    following_.for_each_absent(collection,
                               [&](const ElementKey& key) { call_member(collection, key, message, envelope); });
  }
  const std::size_t slots = collection.slots().size();
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const ChareBase* chare = collection.slots()[slot];
    if (chare == nullptr || following_.is_guest(collection, *chare)) continue;
    call_member(collection, Collection::key_of(*chare), message, envelope);
  }
  messages_.count_out(message);
  ++activity_.calls_run;
  messages_.drop(message);
}

void Calls::run_hello(am::Message& message, const Envelope& envelope) {
  if (desk_.is_refusal(message, envelope)) {
    desk_.on_refusal(message, envelope);
    return messages_.drop(message);
  }
  const Collection* collection = collections_.find(envelope.collection);
  if (collection == nullptr && collections_.has_gone(envelope.collection))
    return latecomers_.came_too_late(message, envelope);
  if (collection != nullptr && collection->singles()) {  // no other will ever have its number
    const ElementKey key = key_of(message, envelope);
    if (collection->find(key) == nullptr && collection->was_deleted(key)) {
      return latecomers_.came_late(message, envelope, collection->name_of(key), "the chare was deleted");
    }
  }
  desk_.on_hello(message, envelope);
  messages_.drop(message);
}

/// True: all data is here, and the method may run. False: the message was taken over, or has failed.
bool Calls::data_ready(ChareBase& chare, const EntryInfo& entry, am::Message& message, const Envelope& envelope) {
  try {
    return landings_.ready(chare, entry, message, envelope);
  } catch (...) {
    messages_.count_out(message);
    ++activity_.calls_run;
    answers_.fail({&context_.core, &chare, &entry, &message, context_.source_of(message), envelope.reply},
                  std::current_exception());
    messages_.drop(message);
    return false;
  }
}

void Calls::invoke(ChareBase& chare, const EntryInfo& entry, am::Message& message, const Envelope& envelope,
                   ReadArchive arguments) noexcept {
  const std::int32_t source = context_.source_of(message);
  const bool answers = envelope.kind == MessageKind::call;
  Invocation invocation{&context_.core, &chare, &entry, &message, source, answers ? envelope.reply : 0};
  const BusyMark mark(Collection::busy_mark(chare));
  const EntryTrace traced(context_.engine.trace(), entry, Trace::flow_of(source, context_.rank, message.wire.sequence));
  try {
    if (entry.awaited) {
      offer_to_whens(invocation, arguments);
    } else {
      entry.invoke(chare, arguments, invocation);
    }
  } catch (...) {
    answers_.fail(invocation, std::current_exception());
  }
}

}  // namespace brant::detail
