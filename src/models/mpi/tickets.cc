#include "models/mpi/tickets.h"

namespace brant::mpi {

std::uint64_t Tickets::give(Request& request) {
  if (free_.empty()) {
    places_.emplace_back();
    free_.reserve(places_.size());
    free_.push_back(static_cast<std::uint32_t>(places_.size()));
  }
  const std::uint32_t number = free_.back();  // counted from 1
  free_.pop_back();
  Place& place = places_[number - 1];
  place.request = &request;
  ++place.uses;
  return (std::uint64_t{place.uses} << 32) | number;
}

Request* Tickets::find(std::uint64_t ticket) const noexcept {
  const auto number = static_cast<std::uint32_t>(ticket);
  if (number == 0 || number > places_.size()) return nullptr;
  const Place& place = places_[number - 1];
  return place.uses == ticket >> 32 ? place.request : nullptr;
}

void Tickets::take_back(std::uint64_t ticket) noexcept {
  if (find(ticket) == nullptr) return;
  const auto number = static_cast<std::uint32_t>(ticket);
  places_[number - 1].request = nullptr;
  free_.push_back(number);
}

}  // namespace brant::mpi
