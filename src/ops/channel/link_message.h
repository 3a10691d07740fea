#pragma once

#include <cstdint>

#include "core/path_choice.h"
#include "port/link.h"

namespace brant {

/// Sends of at most this many bytes carry their bytes in the record, whether or not the receive is there yet.
inline constexpr std::size_t kEagerBytes = kShmSmallBytes;
static_assert(kEagerBytes <= port::kLinkPayloadMax);

/// The header of a channel's records on a link. What the two ends must agree on (which way the bytes go, how many fit,
/// whether a receive was withdrawn) travels here, so no two protocols ever wait for each other.
///
///     sender                         receiver
///     eager [bytes]          ->                        a small message, complete
///                            <-      landing           a receive is there and takes so many bytes
///     ask                    ->                        a large message whose landing is not known yet
///     data [bytes] ...       ->                        a piece of a large message that has a landing
///     elsewhere              ->                        the message comes over the network, under its tag
///     truncated              ->                        the message is longer than the landing: both ends know
///                            <-      retract           that receive is withdrawn, unless its message is on its way
///     retracted              ->                        it was not
struct LinkMessage {
  enum class Kind : std::uint8_t { eager, ask, landing, data, elsewhere, truncated, retract, retracted };

  Kind kind = Kind::eager;
  std::uint8_t from_side = 0;  ///< Side of the end that posts this record.
  bool acknowledged = false;   ///< From the sender: it waits for an acknowledgement.
  bool host_landing = true;    ///< landing: the CPU reaches it.
  std::uint32_t channel = 0;
  std::uint64_t number = 0;  ///< Of the message in its direction.
  std::uint64_t bytes = 0;   ///< Of the whole message; landing: what fits.
  std::uint64_t offset = 0;  ///< data: of this piece.
};
static_assert(sizeof(LinkMessage) <= port::kLinkHeaderBytes);

}  // namespace brant
