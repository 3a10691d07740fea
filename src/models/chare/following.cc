#include "models/chare/following.h"

#include <cstring>
#include <exception>

#include "models/chare/enrolment.h"
#include "models/chare/moving.h"

namespace brant::detail {

using place::Header;
using place::Identity;
using place::Letter;

namespace {

template <typename T>
T read_last(const am::Message& message) noexcept {
  T value;
  std::memcpy(static_cast<void*>(&value), message.data + message.bytes - sizeof(T), sizeof(T));
  return value;
}

void set_flags(am::Message& message, std::uint8_t flags) noexcept {
  auto envelope = message.header<Envelope>();
  envelope.flags = static_cast<std::uint8_t>((envelope.flags & ~(Envelope::kDirect | Envelope::kPassedOn)) | flags);
  message.set_header(envelope);
}

}  // namespace

Following::Following(const ProgramContext& context, Collections& collections, Messages& messages, Sending& sending,
                     ReadyQueue& queue, DataLandings& landings, Latecomers& latecomers, Ending& ending,
                     Enrolment& enrolment) noexcept
    : context_(context),
      collections_(collections),
      messages_(messages),
      sending_(sending),
      queue_(queue),
      landings_(landings),
      latecomers_(latecomers),
      ending_(ending),
      enrolment_(enrolment) {}

ArrayPlaces& Following::places_of(Collection& collection) {
  if (collection.places() == nullptr) {
    collection.set_places(std::make_unique<ArrayPlaces>(context_.rank, static_cast<place::Carrier&>(*this)));
    ++arrays_;
  }
  return *collection.places();
}

Following::ChareLetter& Following::letter_of(Collection& collection, am::Message* message) {
  ChareLetter* letter = letters_.take();
  if (letter == nullptr) throw std::bad_alloc();
  letter->collection = &collection;
  letter->message = message;
  return *letter;
}

// From this rank.

void Following::send(Collection& collection, am::Message& message, const Envelope& envelope, const ElementKey& key) {
  if (!envelope.to_element()) return sending_.deliver(collection.home_of(key), message, envelope);
  set_flags(message, 0);
  ChareLetter& letter = letter_of(collection, &message);
  letter.from = context_.rank;
  at_work_ = &collection;
  collection.places()->delivery.send(collection.identity_of(key), letter);
  receive_own();
}

void Following::receive_own() {
  while (Letter* letter = own_.pop_front()) receive(static_cast<ChareLetter&>(*letter));
}

void Following::send_after(std::int32_t to, Collection& collection, Identity id, am::MessageList& mail) {
  while (am::Message* message = mail.pop_front()) {
    if (awaits_data(*message, message->header<Envelope>())) continue;
    ChareLetter& letter = letter_of(collection, message);
    letter.header = {.origin = context_.source_of(*message), .id = id, .place = {}};
    send(to, letter);
  }
}

bool Following::awaits_data(am::Message& message, const Envelope& envelope) {
  if (!envelope.has_data()) return false;
  const DataHeader data = data_header(message, envelope);
  switch (data.state) {
    case DataState::numbers: landings_.stage(message, envelope, true); return true;
    case DataState::staging: place_as<DataCall>(data)->wanted = true; return true;
    default: return false;
  }
}

bool Following::find(Collection& collection, am::Message& message, const Envelope& envelope, const ElementKey& key) {
  ArrayPlaces* const places = collection.places();
  if (places == nullptr) return false;
  const Identity id = collection.identity_of(key);
  if (places->arriving.contains(id)) {
    collection.waiting[key].push_back(message);
    return true;
  }
  if (places->directory.lives_here(id)) return false;  // it was destroyed
  if (awaits_data(message, envelope)) return true;
  send(collection, message, envelope, key);
  return true;
}

// From other ranks.

bool Following::take(am::Message& message, const Envelope& envelope) {
  const bool of_moves = envelope.kind == MessageKind::moved || envelope.kind == MessageKind::place;
  if (!of_moves && !envelope.to_element()) return false;
  Collection* const collection = collections_.ready(envelope.collection);
  if (collection == nullptr) {
    if (!envelope.follows()) return false;
    set_notes(message, {});
    if (of_moves && collections_.has_gone(envelope.collection)) {
      messages_.drop(message);
    } else {
      latecomers_.await_creation(message, envelope);
    }
    return true;
  }
  if (!envelope.follows() && collection->places() == nullptr) return false;
  const bool has_element =
      collection->dense() && (envelope.kind == MessageKind::place || collection->rule().has(key_of(message, envelope)));
  if (!has_element) {
    drop_damaged(&message, message.peer);
    return true;
  }
  const Identity id = of_moves ? Identity{} : collection->identity_of(key_of(message, envelope));
  // For an element of another home: it was followed when it came, and has waited for its entry since.
  if (!of_moves && !envelope.follows() && id.home() != context_.rank) return false;
  const ArrayPlaces& places = places_of(*collection);
  at_work_ = collection;
  set_notes(message, {});
  if (envelope.kind == MessageKind::moved) {
    take_arrival(*collection, message, envelope);
  } else if (envelope.kind == MessageKind::place) {
    if (!take_letter(*collection, message)) drop_damaged(&message, message.peer);
  } else {
    Header header{.by_home = !envelope.follows(), .origin = message.wire.source, .id = id, .place = {}};
    if ((envelope.flags & Envelope::kPassedOn) != 0) {
      const auto trail = read_last<Trail>(message);
      header.by_home = trail.by_home != 0;
      header.hops = trail.hops;
      header.origin = trail.origin;
      message.wire.source = trail.caller;
      message.bytes -= sizeof(Trail);
    }
    set_flags(message, 0);
    const bool stays = places.directory.lives_here(id) && !places.delivery.turning(id);
    if (envelope.has_data() && !stays) {  // in no order
      const auto own = message.header<Envelope>();
      if (!awaits_data(message, own)) queue_.push(message, own);
    } else {
      ChareLetter& letter = letter_of(*collection, &message);
      letter.header = header;
      letter.from = message.peer;
      receive(letter);
    }
  }
  receive_own();
  return true;
}

void Following::receive(ChareLetter& letter) {
  at_work_ = letter.collection;
  if (letter.collection->places()->delivery.receive(letter)) return;
  drop_damaged(letter.message, letter.from);
  letters_.give_back(&letter);
}

/// False: it contradicts itself.
bool Following::take_letter(Collection& collection, am::Message& message) {
  std::byte raw[sizeof(Header)];
  if (message.bytes != sizeof(raw)) return false;
  std::memcpy(raw, message.data, sizeof(raw));
  const auto is_bool = [&raw](std::size_t at) { return std::to_integer<unsigned>(raw[at]) <= 1; };
  if (!is_bool(offsetof(Header, by_home)) || !is_bool(offsetof(Header, leaves))) return false;
  Header header;
  std::memcpy(static_cast<void*>(&header), raw, sizeof(raw));
  const auto is_rank = [this](std::int32_t rank) { return rank >= 0 && rank < context_.ranks; };
  const bool names_rank = header.place.epoch == 0 || is_rank(header.place.rank);
  if (header.kind == Header::Kind::call || !is_rank(header.origin) || !names_rank) return false;
  if (header.id.number() >= collection.rule().total()) return false;
  if (header.id != collection.identity_of(collection.rule().key_at(header.id.number()))) return false;
  ChareLetter& letter = letter_of(collection, nullptr);
  letter.header = header;
  letter.from = message.peer;
  messages_.drop(message);
  receive(letter);
  return true;
}

/// Its state waits in the queue, in front of the calls that follow it; they also wait while what makes it is not
/// enrolled here yet.
void Following::take_arrival(Collection& collection, am::Message& message, const Envelope& envelope) {
  const Identity id = collection.identity_of(key_of(message, envelope));
  auto& arriving = collection.places()->arriving;
  const auto known = arriving.find(id);
  const bool has_waited = known != arriving.end() && known->second == &message;
  if (!has_waited && !admit(collection, message, envelope, id)) return drop_damaged(&message, message.peer);
  arriving[id] = &message;
  if (enrolment_.must_wait(message, envelope)) {
    try {
      return enrolment_.park(message);
    } catch (...) {
      arriving.erase(id);
      throw;
    }
  }
  set_flags(message, 0);
  queue_.push(message, message.header<Envelope>());
}

bool Following::admit(Collection& collection, const am::Message& message, const Envelope& envelope, Identity id) {
  const auto tail = read_last<PassportTail>(message);
  const std::size_t senders_bytes = std::size_t{tail.senders} * sizeof(std::int32_t);
  const std::size_t prefix = (envelope.flags & Envelope::kWide) != 0 ? kWideBytes : 0;
  if (message.bytes - sizeof(tail) < prefix + senders_bytes) return false;
  place::Passport passport{.id = id,
                           .from = message.peer,
                           .epoch = tail.epoch,
                           .epoch_before = tail.epoch_before,
                           .awaited = tail.awaited,
                           .senders = std::vector<std::int32_t>(tail.senders)};
  const std::size_t senders_at = message.bytes - sizeof(tail) - senders_bytes;
  if (senders_bytes != 0) std::memcpy(passport.senders.data(), message.data + senders_at, senders_bytes);
  for (const std::int32_t rank : passport.senders) {
    if (rank < 0 || rank >= context_.ranks) return false;
  }
  return collection.places()->delivery.arrive(passport);
}

void Following::drop_damaged(am::Message* message, std::int32_t from) noexcept {
  context_.engine.peers().distrust(from, "a message to an element that moved, which contradicts what was sent before");
  if (message != nullptr) messages_.let_go(*message);
}

// The carrier.

Letter& Following::make(const Header& header) {
  ChareLetter& letter = letter_of(*at_work_, nullptr);
  letter.header = header;
  letter.from = context_.rank;
  return letter;
}

void Following::send(std::int32_t rank, Letter& letter) noexcept {
  if (rank == context_.rank) return own_.push_back(letter);
  try {
    carry(rank, static_cast<ChareLetter&>(letter));
  } catch (const std::exception& error) {
    ending_.fail_job(error.what());
  }
}

void Following::carry(std::int32_t rank, ChareLetter& letter) {
  const Header header = letter.header;
  am::Message* message = letter.message;
  const Collection& collection = *letter.collection;
  letters_.give_back(&letter);
  if (message == nullptr) {
    Envelope envelope;
    envelope.kind = MessageKind::place;
    envelope.collection = collection.id();
    envelope.flags = Envelope::kDirect;
    am::Message& made = messages_.make(envelope, sizeof(header));
    std::memcpy(made.data, &header, sizeof(header));
    return sending_.send_to(rank, made, envelope);
  }
  const std::int32_t caller = context_.source_of(*message);
  const bool own_call = header.hops == 0 && header.origin == context_.rank && caller == context_.rank;
  if (own_call && message->units == 0) {
    set_flags(*message, header.by_home ? 0 : Envelope::kDirect);
    return sending_.send_to(rank, *message, message->header<Envelope>());
  }
  const Trail trail{header.origin, caller, header.hops, static_cast<std::uint8_t>(header.by_home ? 1 : 0), 0};
  am::Message& copy = own(*message, sizeof(trail));
  std::memcpy(copy.data + copy.bytes, &trail, sizeof(trail));
  copy.bytes += sizeof(trail);
  set_flags(copy, Envelope::kPassedOn);
  sending_.send_to(rank, copy, copy.header<Envelope>());
}

am::Message& Following::own(am::Message& message, std::size_t room) {
  am::Message& copy = messages_.make(message.header<Envelope>(), message.bytes + room);
  copy.bytes = message.bytes;
  if (message.bytes != 0) std::memcpy(copy.data, message.data, message.bytes);
  copy.wire.source = message.wire.source;
  copy.peer = message.peer;
  set_notes(copy, {});
  messages_.count_out(message);
  context_.messenger.release(message);  // its data is the copy's now
  return copy;
}

void Following::deliver(Letter& letter) noexcept {
  am::Message& message = *static_cast<ChareLetter&>(letter).message;
  letters_.give_back(static_cast<ChareLetter*>(&letter));
  const auto envelope = message.header<Envelope>();
  try {
    if (message.wire.source >= 0 && enrolment_.must_wait(message, envelope)) return enrolment_.park(message);
    queue_.push(message, envelope);
  } catch (const std::exception& error) {
    ending_.fail_job(error.what());
  }
}

void Following::release(Letter& letter) noexcept {
  auto& done = static_cast<ChareLetter&>(letter);
  if (done.message != nullptr) messages_.let_go(*done.message);
  letters_.give_back(&done);
}

void Following::parked(Letter& letter) noexcept {
  auto& of_other = static_cast<ChareLetter&>(letter);
  if (of_other.message == nullptr || of_other.message->units == 0) return;
  try {
    of_other.message = &own(*of_other.message, 0);
  } catch (const std::exception& error) {
    ending_.fail_job(error.what());
  }
}

am::MessageList Following::take_all(Collection& collection) noexcept {
  am::MessageList all;
  ArrayPlaces* const places = collection.places();
  if (places == nullptr) return all;
  while (Letter* letter = places->delivery.take_parked()) {
    auto& waiting = static_cast<ChareLetter&>(*letter);
    if (waiting.message != nullptr) all.push_back(*waiting.message);
    letters_.give_back(&waiting);
  }
  for (auto& [id, departure] : places->departures) {
    while (am::Message* message = departure.mail.pop_front()) all.push_back(*message);
  }
  collection.set_places(nullptr);
  --arrays_;
  return all;
}

}  // namespace brant::detail
