#pragma once

#include <cstddef>
#include <cstdint>

#include "port/wire.h"
#include "port/wire/loopback/fabric.h"
#include "port/wire/loopback/records.h"

namespace brant::port::loopback {

/// The messages that were sent to a wire and have not ended there: on their way, without a receive that matches, before
/// their handler, or with a payload that waits to be named a landing.
class Arrivals {
 public:
  explicit Arrivals(Fabric& fabric) noexcept : fabric_(fabric) {}
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  [[nodiscard]] Message* first(Place place) noexcept { return list_of(place).front(); }
  [[nodiscard]] bool none(Place place) noexcept { return list_of(place).empty(); }
  void put(Message& message, Place place) noexcept;
  void take_out(Message& message) noexcept;

  /// An eager one was sent here; it counts until it is released.
  void note_eager() noexcept { ++eager_held_; }
  /// So many are held that the next tagged ones wait at their senders.
  [[nodiscard]] bool crowded() const noexcept { return eager_held_ >= fabric_.options().messages_max; }
  /// One of those on their way that may come at `tick`, drawn, each with the same chance, and taken out. Null: none
  /// may, or there is no room for it.
  Message* draw(std::uint64_t tick) noexcept;

  /// The receiver has done with it.
  void release(Message& message) noexcept;
  /// Its sender gave up: nothing may be read from its memory any more.
  void sender_gone(Message& message) noexcept;
  /// The sender died: what had fully arrived stays, what would have to be fetched is gone.
  void forget_from(const LoopbackWire& sender) noexcept;
  /// The receiver died: senders that wait for it go on waiting, until they disconnect.
  void drop_all() noexcept;

  /// Calls the handler of a message, whose record stays until that returns, even if the message is released within. A
  /// handler may deliver again: the outer message then still waits for its turn.
  void hand(Message& message, AmHandler handler, void* context, AmMessage& view) noexcept;

 private:
  Messages& list_of(Place place) noexcept;
  [[nodiscard]] bool overtakes_nobody(const Message& message) const noexcept;

  Fabric& fabric_;
  Messages arriving_;    ///< Sent, not yet seen by this wire's progress.
  Messages unexpected_;  ///< Tagged messages that no receive matches.
  Messages inbox_;       ///< Active messages whose handler has not run.
  Messages waiting_;     ///< Active messages whose payload waits for am_receive.
  std::size_t in_inbox_ = 0;
  std::size_t eager_held_ = 0;     ///< Eager messages that have been sent here and are not yet received.
  Message* in_handler_ = nullptr;  ///< Its record must outlive the handler's call.
  bool released_in_handler_ = false;
};

}  // namespace brant::port::loopback
