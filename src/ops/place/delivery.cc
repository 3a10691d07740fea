#include "ops/place/delivery.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::place {

using Kind = Header::Kind;

// Sending and passing on.

void Delivery::send(Identity id, Letter& letter) {
  letter.header = {.kind = Kind::call, .origin = self(), .id = id, .place = {}};
  if (!directory_.anything_moved()) [[likely]] {
    letter.header.by_home = true;
    if (id.home() == self()) return carrier_.deliver(letter);
    return carrier_.send(id.home(), letter);
  }
  if (id.home() == self()) {
    letter.header.by_home = true;
    pass_home(letter);
    return;
  }
  if (park(letter)) return;
  const Way* way = directory_.use_way(id);
  letter.header.by_home = way == nullptr;
  carrier_.send(way != nullptr ? way->place.rank : id.home(), letter);
}

/// True: this rank changes its way to that thing, and the letter waits.
bool Delivery::park(Letter& letter) noexcept {
  if (turns_.empty()) return false;
  const auto turn = turns_.find(letter.header.id);
  if (turn == turns_.end()) return false;
  turn->second.parked.push_back(letter);
  ++parked_;
  if (letter.header.origin != self()) carrier_.parked(letter);
  return true;
}

void Delivery::pass_on(std::int32_t rank, Letter& letter) noexcept {
  ++letter.header.hops;
  carrier_.send(rank, letter);
}

bool Delivery::receive(Letter& letter) {
  const Header header = letter.header;
  switch (header.kind) {
    case Kind::call:
    case Kind::end:
      if (header.hops > kHopsMax) return false;
      if (!header.by_home) return go_on(letter);
      return header.id.home() == self() && pass_home(letter);
    case Kind::here: on_here(header.id, header.place); break;
    case Kind::opened:
      if (!on_opened(header.id, header.place)) return false;
      break;
    default: return false;
  }
  carrier_.release(letter);
  return true;
}

/// At home, of what goes by way of it.
bool Delivery::pass_home(Letter& letter) {
  if (park(letter)) return true;
  letter.header.by_home = false;
  const Way* way = directory_.way(letter.header.id);
  if (way == nullptr) return go_on(letter);
  pass_on(way->place.rank, letter);
  return true;
}

/// Where the thing lives, or did.
bool Delivery::go_on(Letter& letter) {
  const Identity id = letter.header.id;
  if (!directory_.lives_here(id)) {
    Stub* stub = directory_.stub(id);
    return stub != nullptr && go_through(*stub, letter);
  }
  if (letter.header.kind == Kind::call) {
    take_call(directory_.guest(id), letter);
  } else {
    take_end(directory_.guest(id), letter.header);
    carrier_.release(letter);
  }
  return true;
}

bool Delivery::go_through(Stub& stub, Letter& letter) noexcept {
  const Header header = letter.header;
  pass_on(stub.next.rank, letter);
  // Others that begin to send directly end their way by the home, which says nothing of the way to here.
  const bool counts = header.kind == Kind::end && header.place.epoch == stub.epoch;
  if (counts && --stub.awaited == 0) directory_.remove_stub(header.id);
  return true;
}

// At the place of the thing.

void Delivery::take_call(Guest* guest, Letter& letter) {
  const Header& header = letter.header;
  const bool at_home = header.id.home() == self();
  if (guest != nullptr && !at_home && header.hops != 0) invite(*guest, header.id, header.origin);
  carrier_.deliver(letter);
}

/// Who sends by way of the home is told the place, once in a stay.
void Delivery::invite(Guest& guest, Identity id, std::int32_t rank) {
  if (rank == id.home() || guest.senders.size() >= senders_max_) return;
  for (const Guest::Sender& sender : guest.senders) {
    if (sender.rank == rank) return;
  }
  guest.senders.push_back({rank, false});
  tell(rank, Kind::here, id, {self(), guest.epoch});
}

void Delivery::take_end(Guest* guest, const Header& end) {
  const Place by_home{end.id.home(), 0};
  Place answer = by_home;
  if (guest != nullptr) {
    if (end.place.epoch != 0 && end.place.epoch == guest->epoch_before && guest->awaited != 0) --guest->awaited;
    auto& senders = guest->senders;
    const auto sender = std::find_if(senders.begin(), senders.end(),
                                     [&end](const Guest::Sender& one) { return one.rank == end.origin; });
    const bool known = sender != senders.end();
    if (end.id.home() == self() || end.leaves) {  // at home all ways are ways by the home
      if (known) senders.erase(sender);
    } else if (end.origin == end.id.home()) {
      answer = {self(), guest->epoch};
    } else if (known || senders.size() < senders_max_) {
      if (known) {
        sender->direct = true;
      } else {
        senders.push_back({end.origin, true});
      }
      answer = {self(), guest->epoch};
    }
  }
  tell(end.origin, Kind::opened, end.id, answer);
  guest = directory_.guest(end.id);
  if (guest != nullptr && end.id.home() == self() && guest->settled()) directory_.forget_guest(end.id);
}

void Delivery::tell(std::int32_t rank, Kind kind, Identity id, Place place) {
  if (rank != self()) {
    return carrier_.send(rank, carrier_.make({.kind = kind, .origin = self(), .id = id, .place = place}));
  }
  if (kind == Kind::here) {
    on_here(id, place);
  } else {
    static_cast<void>(on_opened(id, place));
  }
}

// At a sender.

void Delivery::on_here(Identity id, Place place) {
  if (const auto turn = turns_.find(id); turn != turns_.end()) {
    turn->second.news = std::max(turn->second.news, place.epoch);
    return;
  }
  Way* way = directory_.use_way(id);
  if (way != nullptr) {
    if (place.newer_than(way->place)) start_turn(*way, false);
  } else if (id.home() != self()) {
    accept(id);
  }
}

/// An invitation to send directly. It is only worth a try: the place may be another by now.
void Delivery::accept(Identity id) {
  if (directory_.add_way(id, {id.home(), 0})) start_turn(*directory_.use_way(id), false);
  if (!directory_.full()) return;
  if (const Way* idle = directory_.least_used()) give_up(idle->id);  // so that there is room for the next
}

void Delivery::give_up(Identity id) {
  Way* way = directory_.use_way(id);
  if (way != nullptr && !way->turning && id.home() != self()) start_turn(*way, true);
}

void Delivery::start_turn(Way& way, bool leaves) {
  turns_[way.id].leaves = leaves;
  directory_.start_turn(way);
  send_end(way.id, way.place, leaves);
}

void Delivery::send_end(Identity id, Place ended, bool leaves) {
  const bool by_home = ended.epoch == 0;
  carrier_.send(
      ended.rank,
      carrier_.make(
          {.kind = Kind::end, .by_home = by_home, .leaves = leaves, .origin = self(), .id = id, .place = ended}));
}

bool Delivery::on_opened(Identity id, Place place) {
  const auto turn = turns_.find(id);
  if (turn == turns_.end()) return false;
  if (place.epoch == 0) {
    directory_.forget_way(id);
    finish_turn(turn);
    return true;
  }
  Way& way = *directory_.use_way(id);
  if (turn->second.leaves || !directory_.turned(way, place)) return false;
  if (turn->second.news > place.epoch) {  // it moved on before the answer was here
    directory_.start_turn(way);
    send_end(id, place, false);
  } else {
    finish_turn(turn);
  }
  return true;
}

void Delivery::finish_turn(Turns::iterator turn) {
  auto finished = turns_.extract(turn);
  while (Letter* letter = finished.mapped().parked.pop_front()) {
    --parked_;
    const Header& header = letter->header;
    if (header.by_home) {
      pass_home(*letter);
    } else {
      send(header.id, *letter);
    }
  }
}

Letter* Delivery::take_parked() noexcept {
  for (auto& [id, turn] : turns_) {
    Letter* const letter = turn.parked.pop_front();
    if (letter == nullptr) continue;
    --parked_;
    return letter;
  }
  return nullptr;
}

// Moves.

bool Delivery::may_depart(Identity id) const noexcept {
  if (!directory_.lives_here(id)) return false;
  const Guest* guest = directory_.guest(id);
  return guest == nullptr || guest->settled();
}

Passport Delivery::depart(Identity id, std::int32_t to) {
  if (!may_depart(id) || to == self()) {
    throw Error(Status::invalid_argument,
                fmt::format("thing {} of rank {} cannot move from rank {} to rank {}: it {}; ask may_depart first",
                            id.number(), id.home(), self(), to,
                            to == self()                ? "is there"
                            : directory_.lives_here(id) ? "has not settled"
                                                        : "is not here"));
  }
  Passport passport{.id = id, .from = self(), .epoch = 0, .epoch_before = 0, .awaited = 0, .senders = {}};
  const Guest* guest = directory_.guest(id);
  if (guest == nullptr) {  // at home: all its senders come by this rank, which from here on sends them on
    passport.epoch = directory_.first_epoch();
    directory_.add_way(id, {to, passport.epoch});
    return passport;
  }
  passport.epoch = guest->epoch + 1;
  passport.epoch_before = guest->epoch;
  for (const Guest::Sender& sender : guest->senders) {
    if (sender.direct) passport.senders.push_back(sender.rank);
  }
  passport.awaited = static_cast<std::uint32_t>(passport.senders.size()) + 1;  // and the home
  directory_.leave_stub(id, {{to, passport.epoch}, passport.epoch_before, passport.awaited});
  directory_.forget_guest(id);
  return passport;
}

bool Delivery::arrive(const Passport& passport) {
  const Identity id = passport.id;
  const Way* way = directory_.way(id);
  const bool known_elsewhere = id.home() != self() || (way != nullptr && passport.epoch > way->place.epoch);
  if (!known_elsewhere || directory_.guest(id) != nullptr || directory_.stub(id) != nullptr) return false;
  Guest guest{
      .epoch = passport.epoch, .epoch_before = passport.epoch_before, .awaited = passport.awaited, .senders = {}};
  for (const std::int32_t rank : passport.senders) guest.senders.push_back({rank, true});
  directory_.enter(id, std::move(guest));
  const Place place{self(), passport.epoch};
  for (const std::int32_t rank : passport.senders) tell(rank, Kind::here, id, place);
  if (passport.from != id.home()) tell(id.home(), Kind::here, id, place);
  return true;
}

}  // namespace brant::place
