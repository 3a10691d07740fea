#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "brant/base/status.h"
#include "core/paths/path_choice.h"
#include "port/link.h"

namespace brant {

/// Sends of at most this many bytes carry their bytes in the record, whether or not the receive is there yet.
inline constexpr std::size_t kEagerBytes = kShmSmallBytes;
static_assert(kEagerBytes <= port::kLinkPayloadMax);
static_assert(kOfferedBytes <= kEagerBytes);

/// The delays and counts of the protocol of LinkMessage, and what justifies them. `docs/decisions` has the figures.
namespace tuned {

/// Landings that a receiver makes known before the sender asks: more than a window of 64 messages (0017) needs.
inline constexpr unsigned kAnnouncedMax = 128;
/// So long nothing is heard before a send asks, if its receiver tells of its receives by itself: some times what a
/// record takes, and little beside what a late receive costs anyway. A question costs both ends a record (0017).
inline constexpr std::chrono::microseconds kQuiet{3};
/// So long it waits in any case: what is heard may be of other channels.
inline constexpr std::chrono::microseconds kQuietMost{100};
/// So long a small send of device memory waits for its receive before it goes into a slot: what the second copy costs,
/// and some more (0016).
inline constexpr std::chrono::microseconds kLate{20};
/// Of so many messages one is asked about again, where the answer was no before: whether the receiver maps a small one
/// (which costs more than to copy it, 0014), and whether the sender's device reaches its landing in host memory (0041).
inline constexpr unsigned kAskEvery = 64;
/// Pieces of one large message before the next one gets its turn, and the rest of the engine: copying must not keep it
/// waiting.
inline constexpr unsigned kTurnPieces = 16;
/// Flags that are looked at behind the last one that was set: messages come in order, nearly always (0017).
inline constexpr unsigned kLooks = 4;

}  // namespace tuned

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
/// Either end posts ChannelControl besides: acknowledgements foremost.
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
    slot_emptied
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
  std::uint64_t number = 0;       ///< Of the message in its direction.
  std::uint64_t bytes = 0;        ///< Of the whole message; landing: what fits.
  std::uint64_t offset : 48 = 0;  ///< data: of this piece. landing, ask, slots: in its allocation. failed: the Status.
  std::uint64_t flag : 16 = 0;    ///< landing: the sender's device may set it; landed, failed: it will not any more.
                                  ///< stored, slot_emptied: of the slot.
  std::uint64_t buffer_id = 0;    ///< landing, ask, slots: of its allocation.
};
static_assert(sizeof(LinkMessage) <= port::kLinkHeaderBytes);

/// What one end tells the other apart from data, a few times per window: a record of the link, or an active message
/// where there is none.
struct ChannelControl {
  /// Numbered behind those of LinkMessage: the first byte of a record says which of the two it is.
  enum class Kind : std::uint16_t {
    opened = 0x20,
    closed,
    acknowledge,
    truncated,
    not_taken,
    not_sent,
    abandoned,
    last
  };

  Kind kind = Kind::acknowledge;
  std::uint16_t sender_side = 0;  ///< Side of the end that sends this control message.
  std::uint32_t channel = 0;
  std::int32_t sender_rank = -1;
  std::uint32_t linked = 0;    ///< opened: that end does not leave all to the network. closed: how often it was opened.
  std::uint64_t prefix = 0;    ///< Of closed to abandoned: all messages before this number have landed.
  std::uint64_t number = 0;    ///< closed, last (the program there has ended): so many were sent. truncated to
                               ///< abandoned: which message.
  Status status = Status::ok;  ///< not_taken: its receive failed; not_sent: it will not come. Why.
};
static_assert(sizeof(ChannelControl) <= port::kLinkHeaderBytes);

// These read what another process wrote, and check all of it that needs no knowledge of what is under way. False: no
// end of ours posts such a record. A `header` of a link has kLinkHeaderBytes.

[[nodiscard]] bool read_link_record(const std::byte* header, std::size_t payload_bytes, LinkMessage& message) noexcept;
/// A record that is a control message.
[[nodiscard]] constexpr bool is_channel_control(const std::byte* header) noexcept {
  return std::to_integer<unsigned>(*header) >= static_cast<unsigned>(ChannelControl::Kind::opened);
}
/// What could be read of it is in `control` in any case: one of the network names its sender by itself.
[[nodiscard]] bool read_channel_control(std::span<const std::byte> header, ChannelControl& control) noexcept;

}  // namespace brant
