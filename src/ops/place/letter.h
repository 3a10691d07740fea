#pragma once

#include <cstdint>

#include "brant/base/intrusive_list.h"
#include "ops/place/place.h"

namespace brant::place {

/// What `Delivery` says to itself on other ranks. Plain bytes; travels in front of what a letter carries.
struct Header {
  enum class Kind : std::uint8_t {
    call,    ///< To a thing: what its senders have to say.
    end,     ///< To a thing: behind the last call that `origin` sends by the way that it went so far.
    here,    ///< To a sender: the thing lives at `place`.
    opened,  ///< To a sender: its end has arrived; it goes on by the way to `place` (epoch 0: by way of the home).
  };

  Kind kind = Kind::call;
  bool by_home = false;      ///< Has still to pass the home, which sends it on by its own way.
  bool leaves = false;       ///< Of an end: the sender wants to go by way of the home again.
  std::uint8_t hops = 0;     ///< How many ranks have passed it on.
  std::int32_t origin = -1;  ///< The sender.
  Identity id;
  Place place;  ///< Of an end: the place to which the way led that ends (epoch 0: the way by the home).
};
static_assert(sizeof(Header) == 24);

/// A message and its header. Who carries letters derives its own record from it. It has one owner at a time.
struct Letter {
  Header header;
  ListHook<Letter> hook;  ///< The present owner's.
};
using LetterList = IntrusiveList<Letter, &Letter::hook>;

/// Takes letters to other ranks and to the things that live here.
class Carrier {
 public:
  virtual ~Carrier() = default;
  /// A letter that has only a header. Throws bad_alloc.
  virtual Letter& make(const Header& header) = 0;
  /// Takes the letter over. What one rank sends to another (or to itself) arrives in that order, at the latter's
  /// `Delivery::receive`, and never within this call. Failures are the carrier's to tell.
  virtual void send(std::int32_t rank, Letter& letter) noexcept = 0;
  /// Takes over a call for a thing that lives here. Its entry runs later, not within this call.
  virtual void deliver(Letter& letter) noexcept = 0;
  /// Takes back a letter that has been read.
  virtual void release(Letter& letter) noexcept = 0;
  /// A letter of another rank has to wait here. Room in that rank's window, if it holds any, is given back: two homes
  /// that wait for each other's letters, with both windows full of letters that wait, would wait for ever.
  virtual void parked(Letter& letter) noexcept = 0;
};

}  // namespace brant::place
