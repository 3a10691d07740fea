#include "port/wire/loopback/arrivals.h"

#include <utility>

namespace brant::port::loopback {
namespace {

/// How many of the arriving messages compete for being next; bounds the cost of shuffling.
constexpr std::size_t kWindow = 64;

constexpr Place kPlaces[] = {Place::arriving, Place::unexpected, Place::inbox, Place::waiting};

}  // namespace

Messages& Arrivals::list_of(Place place) noexcept {
  switch (place) {
    case Place::unexpected: return unexpected_;
    case Place::inbox: return inbox_;
    case Place::waiting: return waiting_;
    default: return arriving_;
  }
}

void Arrivals::put(Message& message, Place place) noexcept {
  message.where = place;
  if (place == Place::inbox) ++in_inbox_;
  list_of(place).push_back(message);
}

void Arrivals::take_out(Message& message) noexcept {
  if (message.where != Place::none) list_of(message.where).remove(message);
  if (message.where == Place::inbox) --in_inbox_;
  message.where = Place::none;
}

/// An earlier message that this one must not overtake would be found in front of it.
bool Arrivals::overtakes_nobody(const Message& message) const noexcept {
  const LoopbackOptions& options = fabric_.options();
  for (const Message* earlier = arriving_.front(); earlier != &message; earlier = Messages::next(*earlier)) {
    const bool same_pair = earlier->from == message.from;
    const bool same_lane = !options.shuffle_tags || (earlier->type == message.type && earlier->tag == message.tag);
    if (same_pair ? same_lane : !options.shuffle_pairs) return false;
  }
  return true;
}

Message* Arrivals::draw(std::uint64_t tick) noexcept {
  if (in_inbox_ >= fabric_.options().messages_max) return nullptr;
  Message* chosen = nullptr;
  std::uint64_t ready = 0;
  std::size_t seen = 0;
  for (Message* message = arriving_.front(); message != nullptr && seen < kWindow;
       message = Messages::next(*message), ++seen) {
    if (message->due > tick || !overtakes_nobody(*message)) continue;
    if (fabric_.random() % ++ready == 0) chosen = message;
  }
  if (chosen != nullptr) take_out(*chosen);
  return chosen;
}

void Arrivals::release(Message& message) noexcept {
  take_out(message);
  if (message.eager && eager_held_ > 0) --eager_held_;  // 0 only after the handler killed this wire
  if (&message == in_handler_) {
    released_in_handler_ = true;
  } else {
    fabric_.give(message);
  }
}

void Arrivals::sender_gone(Message& message) noexcept {
  if (message.where == Place::waiting) {
    message.source_gone = true;  // the user holds the descriptor and will come with it
    return;
  }
  take_out(message);
  fabric_.give(message);
}

void Arrivals::forget_from(const LoopbackWire& sender) noexcept {
  for (const Place place : kPlaces) {
    Message* following = nullptr;
    for (Message* message = list_of(place).front(); message != nullptr; message = following) {
      following = Messages::next(*message);
      const bool lost = message->from == &sender && (!message->eager || place == Place::arriving);
      if (!lost) continue;
      if (message->eager) --eager_held_;
      if (message->op != nullptr) message->endpoint->forget(*message);
      message->op = nullptr;
      sender_gone(*message);
    }
  }
}

void Arrivals::drop_all() noexcept {
  for (const Place place : kPlaces) {
    while (Message* message = list_of(place).front()) {
      take_out(*message);
      message->to = nullptr;
      if (message == in_handler_) {
        released_in_handler_ = message->op == nullptr;
      } else if (message->op == nullptr) {
        fabric_.give(*message);
      }
    }
  }
  eager_held_ = 0;
}

void Arrivals::hand(Message& message, AmHandler handler, void* context, AmMessage& view) noexcept {
  Message* outer = std::exchange(in_handler_, &message);
  const bool outer_released = std::exchange(released_in_handler_, false);
  handler(context, view);
  if (message.eager) release(message);
  const bool released = std::exchange(released_in_handler_, outer_released);
  in_handler_ = outer;
  if (released) fabric_.give(message);
}

}  // namespace brant::port::loopback
