#include "models/chare/routing.h"

namespace brant::detail {

Routing::Routing(Activity& activity, Collections& collections, Messages& messages, Sending& sending, ReadyQueue& queue,
                 DataLandings& landings, Latecomers& latecomers, Following& following, Answers& answers,
                 const Ending& ending) noexcept
    : activity_(activity),
      collections_(collections),
      messages_(messages),
      sending_(sending),
      queue_(queue),
      landings_(landings),
      latecomers_(latecomers),
      following_(following),
      answers_(answers),
      ending_(ending) {}

void Routing::post(am::Message& message) {
  const auto envelope = message.header<Envelope>();
  if (ending_.leaving() && !envelope.urgent()) {  // nobody would run it
    messages_.let_go(message);
    return;
  }
  messages_.count_in(message);
  if (envelope.counted()) ++activity_.calls_sent;
  route(message);
}

void Routing::route(am::Message& message) {
  const auto envelope = message.header<Envelope>();
  if (envelope.by_tree()) {
    sending_.forward_by_tree(message, envelope);
    if (envelope.kind == MessageKind::create)
      collections_.make(message, envelope);  // calls that follow know where to go
    if (envelope.has_data()) return landings_.stage(message, envelope, true);
    return queue_.push(message, envelope);
  }
  if (envelope.kind == MessageKind::multicast) return queue_.push(message, envelope);
  std::int32_t destination = message.peer;  // of a reply
  Collection* collection = nullptr;
  if (envelope.kind != MessageKind::reply) {
    collection = collections_.find(envelope.collection);
    if (collection == nullptr) return latecomers_.await_creation(message, envelope);
    try {
      destination = collection->rank_of(key_of(message, envelope));
    } catch (...) {
      messages_.drop(message);
      throw;
    }
  }
  if (envelope.reply != 0 && envelope.kind == MessageKind::call && message.wire.source < 0) {
    if (WaitingCalls::Entry* waiting = answers_.waiting().find(envelope.reply)) waiting->rank = destination;
  }
  if (collection != nullptr && collection->places() != nullptr) [[unlikely]]
    return following_.send(*collection, message, envelope, key_of(message, envelope));
  sending_.deliver(destination, message, envelope);
}

}  // namespace brant::detail
