#pragma once

#include <cstdint>
#include <unordered_map>

#include "ops/am/message.h"
#include "ops/place/delivery.h"

namespace brant::detail {

struct Handover;

/// Where the elements of one array live, as one rank sees it. Made with the first move that this rank hears of: an
/// array of which nothing ever moved has none.
struct ArrayPlaces {
  /// An element that will leave: what came for it since its turn, which goes along.
  struct Departure {
    std::int32_t to = -1;
    const Handover* how = nullptr;
    bool leaving = false;
    am::MessageList mail;
  };
  template <typename T>
  using ById = std::unordered_map<place::Identity, T, place::Identity::Hash>;

  ArrayPlaces(std::int32_t self, place::Carrier& carrier) : directory(self), delivery(directory, carrier) {}

  place::Directory directory;
  place::Delivery delivery;
  ById<Departure> departures;
  /// Those whose state has come and waits to be constructed, in this message.
  ById<const am::Message*> arriving;
};

}  // namespace brant::detail
