#pragma once

#include <cstdint>

#include "core/paths/path_choice.h"
#include "port/link.h"

namespace brant {

/// Sends of at most this many bytes carry their bytes in the record, whether or not the receive is there yet.
inline constexpr std::size_t kEagerBytes = kShmSmallBytes;
static_assert(kEagerBytes <= port::kLinkPayloadMax);
static_assert(kOfferedBytes <= kEagerBytes);

/// Landings that a receiver makes known before the sender asks.
inline constexpr unsigned kAnnouncedMax = 128;

/// The header of a channel's records on a link. What the two ends must agree on (which way the bytes go, how many fit,
/// whether a receive was withdrawn) travels here, so no two protocols ever wait for each other.
///
///     sender                     receiver
///     eager [bytes]      ->                   eager    a small message, complete
///                        <-  landing          CTS      a receive is there and takes so many bytes
///     ask                ->                   RTS      a message whose landing is not known yet, or that the receiver
///                                                      may copy from where it is
///                        <-  taken            FIN      it has
///                        <-  declined         NACK     it cannot: as landing
///     data [bytes] ...   ->                            a piece of a large message that has a landing
///     landed             ->                   FIN      the sender's device has written it into the mapped landing;
///                                                      not sent if its courier has set the landing's flag
///     stored             ->                   FIN      the same, but it lies in a slot: its receive was late (see
///                                                      DeviceSlots)
///     failed             ->                   NACK     the message will not come, whatever was agreed: its sender
///                                                      could not read or carry it
///     truncated          ->                   NACK     the message is longer than the landing: both ends know
///     elsewhere          ->                            the message comes over the network, under its tag
///     abandoned          ->                   cancel   the sender wants its source back: the message is taken now,
///                                                      or never; where it was offered, taken or declined follows
///                        <-  retract          cancel   that receive is withdrawn, unless its message is on its way
///     retracted          ->                            it was not
///                        <-  slots                     where they are, once for each pair of processes
///                        <-  slot_emptied     credit   one may be used again
///
/// Either end: `control`, what it tells the other apart from data (see ChannelControl): acknowledgements foremost.
struct LinkMessage {
  enum class Kind : std::uint8_t {
    eager,
    landing,
    ask,
    taken,
    declined,
    data,
    landed,
    failed,
    abandoned,
    stored,
    elsewhere,
    truncated,
    retract,
    retracted,
    slots,
    slot_emptied,
    control
  };
  /// Where a landing is, as the sender sees it; ask: where the message is, as the receiver sees it.
  enum class Place : std::uint8_t {
    host,    ///< The CPU of its own process reaches it.
    mapped,  ///< In the allocation `buffer_id`, which the other end was told how to map (see MappingMessage).
    other,   ///< Device memory: of a landing that cannot be mapped; of a message, whose device writes what it reaches.
  };

  /// It is about what two processes share, for all their channels.
  [[nodiscard]] bool is_of_no_channel() const noexcept { return kind == Kind::slots || kind == Kind::slot_emptied; }

  static constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << 48) - 1;

  Kind kind = Kind::eager;
  std::uint8_t from_side = 0;  ///< Side of the end that posts this record.
  bool acknowledged = false;   ///< From the sender: it waits for an acknowledgement.
  Place place = Place::host;   ///< landing, ask.
  std::uint32_t channel = 0;
  std::uint64_t number = 0;  ///< Of the message in its direction.
  std::uint64_t bytes = 0;   ///< Of the whole message; landing: what fits. control: the prefix.
  std::uint64_t offset : 48 =
      0;  ///< data: of this piece. landing, ask, slots: in its allocation. failed, control: the Status.
  std::uint64_t flag : 16 = 0;  ///< landing: the sender's device may set it; landed, failed: it will not any more.
                                ///< stored, slot_emptied: of the slot. control: its kind.
  std::uint64_t buffer_id = 0;  ///< landing, ask, slots: of its allocation. control: `linked`.
};
static_assert(sizeof(LinkMessage) <= port::kLinkHeaderBytes);

}  // namespace brant
