#include "models/chare/callback_functions.h"

#include <utility>

#include <fmt/format.h>

namespace brant::detail {

CallbackTarget CallbackFunctions::keep(Function function, std::int32_t rank) {
  std::size_t place = places_.size();
  if (!free_.empty()) {
    place = free_.back();
    free_.pop_back();
  } else if (place < kFunctionsMax) {
    places_.emplace_back();
    free_.reserve(places_.capacity());  // nothing is allocated when one is given back
  } else {
    throw Error(Status::limit_reached,
                fmt::format("rank {} has {} function callbacks: make one and call it often, or destroy those that "
                            "nobody calls any more",
                            rank, places_.size()));
  }
  places_[place].run = std::move(function);
  CallbackTarget target;
  target.kind = CallbackKind::function;
  target.rank = rank;
  target.number = static_cast<std::uint32_t>(place);
  target.section = places_[place].turn;
  return target;
}

CallbackFunctions::Place& CallbackFunctions::place_of(std::uint32_t number, std::uint64_t turn) {
  if (number < places_.size() && places_[number].turn == turn) return places_[number];
  throw Error(Status::not_found,
              "a callback was called, or destroyed, after it was destroyed: let its last callers finish before that");
}

void CallbackFunctions::destroy(std::uint32_t number, std::uint64_t turn) {
  Place& place = place_of(number, turn);
  ++place.turn;
  const auto dying = std::exchange(place.run, {});  // what it holds may look for others when it goes
  free_.push_back(number);
}

}  // namespace brant::detail
