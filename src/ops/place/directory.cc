#include "ops/place/directory.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace brant::place {

Directory::Directory(std::int32_t self, std::size_t ways_max) : self_(self), ways_max_(ways_max) {}

std::int32_t Directory::rank_of_moved(Identity id) const noexcept {
  if (guests_.contains(id)) return self_;
  if (const auto stub = stubs_.find(id); stub != stubs_.end()) return stub->second.next.rank;
  const Way* known = way(id);
  return known != nullptr ? known->place.rank : id.home();
}

bool Directory::lives_here(Identity id) const noexcept {
  if (!anything_moved()) return id.home() == self_;
  return guests_.contains(id) || (id.home() == self_ && !away_.contains(id));
}

const Way* Directory::way(Identity id) const noexcept {
  const Ways& ways = ways_to(id);
  const auto found = ways.find(id);
  return found != ways.end() ? &found->second : nullptr;
}

Way* Directory::use_way(Identity id) noexcept {
  auto* found = const_cast<Way*>(way(id));
  if (found != nullptr && found->by_use.linked()) {
    by_use_.remove(*found);
    by_use_.push_back(*found);
  }
  return found;
}

bool Directory::add_way(Identity id, Place place) {
  const bool bounded = id.home() != self_;
  if (bounded && full()) return false;
  const auto [at, is_new] = ways_to(id).emplace(id, Way{id, place, false, {}});
  if (!is_new) return false;
  ++records_;
  if (bounded) by_use_.push_back(at->second);
  return true;
}

void Directory::start_turn(Way& way) noexcept {
  way.turning = true;
  if (way.by_use.linked()) by_use_.remove(way);
}

bool Directory::turned(Way& way, Place place) noexcept {
  assert(way.turning);
  if (!place.newer_than(way.place)) return false;
  way.turning = false;
  way.place = place;
  if (way.id.home() != self_) by_use_.push_back(way);
  return true;
}

void Directory::forget_way(Identity id) noexcept {
  Ways& ways = ways_to(id);
  const auto found = ways.find(id);
  if (found == ways.end()) return;
  if (found->second.by_use.linked()) by_use_.remove(found->second);
  ways.erase(found);
  --records_;
}

Guest* Directory::guest(Identity id) noexcept {
  if (guests_.empty()) return nullptr;
  const auto found = guests_.find(id);
  return found != guests_.end() ? &found->second : nullptr;
}

Guest& Directory::enter(Identity id, Guest guest) {
  const auto [at, is_new] = guests_.emplace(id, std::move(guest));
  assert(is_new && "a thing lives in one place");
  records_ += is_new ? 1 : 0;
  return at->second;
}

void Directory::forget_guest(Identity id) noexcept {
  const auto found = guests_.find(id);
  if (found == guests_.end()) return;
  // Elsewhere the epoch goes on with the thing.
  if (id.home() == self_) forgotten_epoch_ = std::max(forgotten_epoch_, found->second.epoch);
  guests_.erase(found);
  --records_;
}

Stub* Directory::stub(Identity id) noexcept {
  if (stubs_.empty()) return nullptr;
  const auto found = stubs_.find(id);
  return found != stubs_.end() ? &found->second : nullptr;
}

void Directory::leave_stub(Identity id, const Stub& stub) {
  const bool is_new = stubs_.emplace(id, stub).second;
  assert(is_new && "a thing that has not settled does not move on");
  records_ += is_new ? 1 : 0;
}

void Directory::remove_stub(Identity id) noexcept { records_ -= stubs_.erase(id); }

}  // namespace brant::place
