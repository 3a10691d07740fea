#include "models/chare/moving.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include <fmt/format.h>

#include "models/chare/mail.h"

namespace brant::detail {

Moving::Moving(const ProgramContext& context, Collections& collections, DataCalls& data_calls, Messages& messages,
               Sending& sending, ReadyQueue& queue, const ChannelDesk& desk, Following& following,
               Ending& ending) noexcept
    : context_(context),
      collections_(collections),
      data_calls_(data_calls),
      messages_(messages),
      sending_(sending),
      queue_(queue),
      desk_(desk),
      following_(following),
      ending_(ending) {}

std::string Moving::pinned_by(const ChareBase& chare) const {
  const Collection& collection = Collection::of(chare);
  if (!collection.dense()) return "only elements of dense arrays have numbers by which messages could follow them";
  if (Collection::first_task(chare) != nullptr) return "a coroutine of it has not ended";
  const Mail* const mail = Mail::find(chare);
  const bool keeps = mail != nullptr && std::any_of(mail->boxes.begin(), mail->boxes.end(),
                                                    [](const Mail::Box& box) { return box.size() != 0; });
  if (keeps) return "it keeps calls that no when has taken";
  if (desk_.holds_end_of({collection.id(), Collection::key_of(chare)}))
    return "it has, or waits for, the end of a channel";
  return {};
}

void Moving::move(ChareBase& chare, std::int32_t to, const Handover& how) {
  const auto& of = Collection::of(chare);
  std::string why = pinned_by(chare);
  if (to < 0 || to >= context_.ranks) why = fmt::format("the job has ranks 0 to {}", context_.ranks - 1);
  if (to == context_.rank) why = "it is there";
  if (Collection::leaving(chare).destroyed) why = "it is about to be destroyed";
  Collection& collection = *collections_.find(of.id());
  const ElementKey key = Collection::key_of(chare);
  if (why.empty() && !following_.places_of(collection).departures.try_emplace(collection.identity_of(key)).second) {
    why = "it is about to move already";
  }
  if (!why.empty()) {
    throw Error(Status::invalid_argument, fmt::format("{} cannot move from rank {} to rank {}: {}",
                                                      Collection::name_of(chare), context_.rank, to, why));
  }
  ArrayPlaces::Departure& departure = collection.places()->departures[collection.identity_of(key)];
  departure.to = to;
  departure.how = &how;
  Envelope envelope;
  envelope.kind = MessageKind::depart;
  envelope.collection = collection.id();
  envelope.key = collection.rule().linear(key);
  queue_.push(messages_.make(envelope, 0), envelope);
}

bool Moving::has_data_coming(const ChareBase& chare) const noexcept {
  for (const DataCall* call = data_calls_.first(); call != nullptr; call = data_calls_.next(*call)) {
    if (call->chare == &chare) return true;
  }
  return false;
}

void Moving::run_depart(am::Message& message, const Envelope& envelope) {
  Collection* const collection = collections_.ready(envelope.collection);
  if (collection == nullptr) return messages_.drop(message);
  const ElementKey key = collection->rule().key_at(envelope.key);
  const place::Identity id = collection->identity_of(key);
  ArrayPlaces& places = *collection->places();
  ArrayPlaces::Departure& departure = places.departures.at(id);
  ChareBase* const chare = collection->find(key);
  if (chare != nullptr && Collection::leaving(*chare).destroyed)
    return queue_.push(message, envelope);  // its destroy comes first
  if (chare == nullptr || !pinned_by(*chare).empty()) {
    messages_.drop(message);
    return stay(places, chare, id);
  }
  departure.leaving = Collection::leaving_mark(*chare).moved = places.delivery.may_depart(id);
  if (!departure.leaving || has_data_coming(*chare) || Collection::busy(*chare)) return queue_.push(message, envelope);
  messages_.drop(message);
  depart(*collection, *chare, id);
}

void Moving::stay(ArrayPlaces& places, ChareBase* chare, place::Identity id) noexcept {
  auto departing = places.departures.extract(id);
  if (chare != nullptr) Collection::leaving_mark(*chare).moved = false;
  queue_.push_front(departing.mapped().mail);
}

bool Moving::hold(const Collection& collection, am::Message& message, const Envelope& envelope, const ElementKey& key) {
  ArrayPlaces* const places = collection.places();
  if (places == nullptr) return false;
  const auto found = places->departures.find(collection.identity_of(key));
  if (found == places->departures.end() || !found->second.leaving) return false;
  if (envelope.has_data() && data_header(message, envelope).state == DataState::landed) return false;  // came before
  found->second.mail.push_back(message);
  return true;
}

void Moving::depart(Collection& collection, ChareBase& chare, place::Identity id) {
  ArrayPlaces& places = *collection.places();
  const ElementKey key = Collection::key_of(chare);
  std::vector<std::byte> state;
  try {
    state = places.departures.at(id).how->state(chare);
  } catch (...) {
    stay(places, &chare, id);
    throw;
  }
  auto departing = places.departures.extract(id);
  ArrayPlaces::Departure& departure = departing.mapped();
  const place::Passport passport = places.delivery.depart(id, departure.to);
  const PassportTail tail{passport.epoch, passport.epoch_before, passport.awaited,
                          static_cast<std::uint32_t>(passport.senders.size()), Collection::next_reduction(chare)};
  const std::size_t prefix = key.wide() ? kWideBytes : 0;
  const std::size_t senders_bytes = passport.senders.size() * sizeof(passport.senders[0]);
  Envelope envelope;
  envelope.kind = MessageKind::moved;
  envelope.collection = collection.id();
  envelope.number = number_of(*departure.how->constructor);
  envelope.key = key.word[0];
  envelope.flags = static_cast<std::uint8_t>(Envelope::kDirect | (prefix != 0 ? Envelope::kWide : 0));
  am::Message& message = messages_.make(envelope, prefix + state.size() + senders_bytes + sizeof(tail));
  std::byte* at = message.data;
  const auto put = [&at](const void* bytes, std::size_t count) {
    if (count != 0) std::memcpy(at, bytes, count);
    at += count;
  };
  put(&key.word[1], prefix);
  put(state.data(), state.size());
  put(passport.senders.data(), senders_bytes);
  put(&tail, sizeof(tail));
  sending_.send_to(departure.to, message, envelope);
  am::MessageList rest = queue_.extract([&](const am::Message& waiting) {
    const auto inner = waiting.header<Envelope>();
    return inner.to_element() && inner.collection == collection.id() && key_of(waiting, inner) == key;
  });
  while (am::Message* next = rest.pop_front()) departure.mail.push_back(*next);
  following_.send_after(departure.to, collection, id, departure.mail);
  collection.destroy(chare, Gone::elsewhere);
}

void Moving::run_moved(am::Message& message, const Envelope& envelope) {
  Collection* const collection = collections_.ready(envelope.collection);
  if (collection == nullptr) return messages_.drop(message);
  const auto* constructor = context_.registry.find<ConstructorInfo>(envelope.number, RegisteredKind::constructor);
  if (constructor == nullptr) throw Error(Status::internal, "an element comes with a constructor that is none");
  const ElementKey key = key_of(message, envelope);
  PassportTail tail;
  std::memcpy(&tail, message.data + message.bytes - sizeof(tail), sizeof(tail));
  ReadArchive arguments = arguments_of(context_.chares, message, envelope);
  collection->places()->arriving.erase(collection->identity_of(key));
  try {
    collection->construct(key, *constructor, arguments, tail.next_reduction);
  } catch (const std::exception& error) {
    ending_.fail_job(fmt::format("{} could not be made again on rank {}: {}", collection->name_of(key), context_.rank,
                                 error.what()));
    return messages_.drop(message);
  }
  messages_.drop(message);
  am::MessageList early = collection->take_waiting(key);
  queue_.push_front(early);
}

}  // namespace brant::detail
