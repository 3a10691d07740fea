#include "models/pgas/directory.h"

#include <algorithm>
#include <new>

#include "base/log.h"
#include "models/pgas/space_state.h"

namespace brant {

using State = KnownSegment::State;

KnownSegment* Directory::find(std::int32_t rank, std::uint32_t segment) const noexcept {
  const auto found = known_.find(key_of(rank, segment));
  return found == known_.end() ? nullptr : found->second.get();
}

KnownSegment* Directory::look_up(std::int32_t rank, std::uint32_t segment) noexcept {
  KnownSegment* known = find(rank, segment);
  if (known == nullptr || known->state != State::open) return nullptr;
  recent_[place_of(rank, segment)] = known;
  return known;
}

KnownSegment* Directory::add(std::int32_t rank, std::uint32_t segment, Status& why) noexcept {
  why = Status::limit_reached;
  if (known_.size() >= kKnownMax) return nullptr;
  try {
    unsettled_.reserve(unsettled_.size() + 1);
    auto& place = known_[key_of(rank, segment)];
    place = std::make_unique<KnownSegment>(rank, segment);
    unsettled_.push_back(place.get());
    return place.get();
  } catch (const std::bad_alloc&) {
    known_.erase(key_of(rank, segment));
    why = Status::no_memory;
    return nullptr;
  }
}

void Directory::remove(KnownSegment& known) noexcept {
  KnownSegment*& recent = recent_[place_of(known.rank, known.segment)];
  if (recent == &known) recent = nullptr;
  std::erase(unsettled_, &known);
  known_.erase(key_of(known.rank, known.segment));
}

Status Directory::reach(GlobalPtr<const std::byte> at, KnownSegment*& known) noexcept {
  known = find_open(at.rank(), at.segment());
  const Peer* const owner = space_.engine().peers().find(at.rank());
  // Its memory may be mapped still.
  if (known != nullptr) return owner != nullptr && owner->lost ? Status::peer_lost : Status::ok;
  if (at.is_null() || owner == nullptr) {
    log::error("a copy of the global space at {}: there is no such place", describe(at));
    return Status::invalid_argument;
  }
  if (is_closed_) return Status::canceled;
  known = find(at.rank(), at.segment());
  if (known != nullptr) return known->state == State::leaving ? Status::not_found : Status::in_progress;
  if (space_.has_gone(at.rank())) return Status::peer_lost;
  Status status = Status::ok;
  known = add(at.rank(), at.segment(), status);
  if (known == nullptr) return status;
  const bool is_own = at.rank() == space_.rank();
  status =
      is_own ? open_own(*known) : space_.say(at.where(), {.word = pgas::SpaceWord::ask, .segment = at.segment()}, {});
  if (status != Status::ok) {
    log::error("a copy of the global space at {}: {}", describe(at), status_text(status));
    remove(*known);
    known = nullptr;
    return status;
  }
  return is_own ? Status::ok : Status::in_progress;
}

/// Of an owner of this process nothing need be asked, but it is told when this process does not use it any more.
Status Directory::open_own(KnownSegment& known) noexcept {
  OwnedSegment* owned = space_.owned().find(known.segment);
  if (owned == nullptr) return Status::not_found;
  try {
    owned->holders.push_back(known.rank);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  const Status status = take_ticket(known, owned->segment.ticket());
  if (status != Status::ok) std::erase(owned->holders, known.rank);
  return status;
}

Status Directory::take_ticket(KnownSegment& known, const SegmentTicket& ticket) noexcept {
  try {
    known.remote = RemoteSegment(space_.runtime(), Rank{known.rank}, ticket);
  } catch (const Error& fault) {
    log::error("segment {} of rank {} cannot be reached: {}", known.segment, known.rank, fault.what());
    return fault.status();
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  known.state = State::open;
  std::erase(unsettled_, &known);
  return Status::ok;
}

void Directory::note_ticket(std::int32_t owner, std::uint32_t segment, Status status,
                            std::span<const std::byte> ticket) noexcept {
  KnownSegment* known = find(owner, segment);
  if (known != nullptr && known->state != State::asked) return;  // it was published, and then told, or the reverse
  if (status != Status::ok) {
    if (known != nullptr) fail(*known, status);
    return;
  }
  Status why = Status::ok;
  if (known == nullptr && !is_closed_) known = add(owner, segment, why);
  if (known != nullptr) {
    try {
      known->ticket = std::make_unique<SegmentTicket>(ticket);
      known->state = State::told;
      return open_soon();
    } catch (const std::bad_alloc&) {
      fail(*known, Status::no_memory);
    }
  }
  space_.let_go(owner, segment);
}

void Directory::open_soon() noexcept {
  if (opens_soon_) return;
  opens_soon_ = true;
  opening_.delivered = {&Directory::open_told, this};
  space_.engine().completions().complete(opening_, {Status::ok, 0});
}

void Directory::open_told(void* directory, const OpResult&) noexcept {
  auto& self = *static_cast<Directory*>(directory);
  self.opens_soon_ = false;
  const auto is_told = [](const KnownSegment* known) { return known->state == State::told; };
  for (;;) {  // anew each time: others may come and go while one is opened
    const auto next = std::ranges::find_if(self.unsettled_, is_told);
    if (next == self.unsettled_.end()) return;
    self.open(**next);
  }
}

void Directory::open(KnownSegment& known) noexcept {
  known.state = State::opening;
  const std::unique_ptr<SegmentTicket> ticket = std::move(known.ticket);
  const Status status = take_ticket(known, *ticket);
  if (status != Status::ok) {
    space_.let_go(known.rank, known.segment);
    return fail(known, status);
  }
  while (CopyRecord* copy = known.waiting.pop_front()) space_.copies().go_on(*copy, Status::ok);
  if (known.is_retired || is_closed_) leave(known);
}

/// Everything that waits for it ends so.
void Directory::fail(KnownSegment& known, Status status) noexcept {
  while (CopyRecord* copy = known.waiting.pop_front()) space_.copies().go_on(*copy, status);
  remove(known);
}

bool Directory::note_retired(std::int32_t owner, std::uint32_t segment) noexcept {
  KnownSegment* known = find(owner, segment);
  if (known == nullptr) return false;
  known->is_retired = true;
  switch (known->state) {
    case State::open: leave(*known); return true;
    case State::opening:
    case State::leaving: return true;
    case State::asked:
    case State::told: fail(*known, Status::not_found); return false;
  }
  return true;
}

void Directory::leave(KnownSegment& known) noexcept {
  known.state = State::leaving;
  space_.windows().close_those_of(known.rank, known.segment);
  KnownSegment*& recent = recent_[place_of(known.rank, known.segment)];
  if (recent == &known) recent = nullptr;
  try {
    unsettled_.push_back(&known);
  } catch (const std::bad_alloc&) {
    // Nobody looks at it again, so it is left as it is: what moves ends by itself.
    known.remote.close();
  }
  look_at_leaving(known);
}

void Directory::look_at_leaving(KnownSegment& known) noexcept {
  if (known.remote.pending() != 0 || known.uses != 0) return;
  known.remote.close();
  const std::int32_t owner = known.rank;
  const std::uint32_t segment = known.segment;
  remove(known);
  space_.let_go(owner, segment);
}

void Directory::look_around() noexcept {
  for (std::size_t i = unsettled_.size(); i-- > 0;) {
    if (i >= unsettled_.size()) continue;  // several have gone at once
    KnownSegment& known = *unsettled_[i];
    if (known.state == State::leaving) {
      look_at_leaving(known);
    } else if (known.state == State::asked && space_.has_gone(known.rank)) {
      fail(known, Status::peer_lost);
    }
  }
}

void Directory::close() noexcept {
  is_closed_ = true;
  std::vector<KnownSegment*> all;
  try {
    for (const auto& [key, known] : known_) all.push_back(known.get());
  } catch (const std::bad_alloc&) {
    return known_.clear();
  }
  for (KnownSegment* known : all) {
    switch (known->state) {
      case State::open: leave(*known); break;
      case State::asked: fail(*known, Status::canceled); break;
      case State::told:
        space_.let_go(known->rank, known->segment);
        fail(*known, Status::canceled);
        break;
      case State::opening:
      case State::leaving: break;
    }
  }
}

const KnownSegment* Directory::awaited() const noexcept {
  const auto found = std::ranges::find(unsettled_, KnownSegment::State::asked, &KnownSegment::state);
  return found != unsettled_.end() ? *found : nullptr;
}

}  // namespace brant
