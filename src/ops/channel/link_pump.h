#pragma once

#include <array>

#include "core/engine.h"
#include "ops/channel/device_slots.h"
#include "ops/channel/landing_flags.h"
#include "ops/channel/link_message.h"
#include "ops/channel/transfer.h"
#include "ops/mapping/table.h"

namespace brant {

/// What one peer and this process have for all channels between them, and the sends that wait: for room in the peer's
/// ring (small messages, and large ones piece by piece, each getting its turn), or for word of their receives before
/// they ask for it. A receiver that tells of its receives by itself mostly does so soon, and a question would cost both
/// ends a record.
class LinkPump final : private Poller {
 public:
  /// Throws only if memory is exhausted.
  LinkPump(Engine& engine, Peer& peer, MappingTable& mappings)
      : engine_(engine),
        peer_(peer),
        mappings_(mappings.with(peer)),
        flags_(engine, peer, mappings_.flags),
        slots_(engine, peer, *this) {}
  ~LinkPump() { engine_.pollers().detach(*this); }

  [[nodiscard]] const Peer& peer() const noexcept { return peer_; }
  [[nodiscard]] port::Link& link() noexcept { return *peer_.link; }
  [[nodiscard]] PeerMappings& mappings() noexcept { return mappings_; }
  [[nodiscard]] LandingFlags& flags() noexcept { return flags_; }
  [[nodiscard]] DeviceSlots& slots() noexcept { return slots_; }

  /// Fills in where memory of this process is. See Exports::describe.
  Status describe(const void* data, LinkMessage& message, std::uint64_t buffer_id = 0) noexcept;

  /// Sends `transfer.here` as far as there is room now. True: all of it went. False: the rest follows, and the
  /// endpoint is told at the end (`ChannelEndpoint::carried`).
  bool send(Transfer& transfer) noexcept;
  void withdraw(Transfer& transfer) noexcept;
  /// `LinkSender::ask_late` follows, unless the send is forgotten before.
  void put_off(Transfer& transfer) noexcept;
  /// The peer told of a receive.
  void heard() noexcept { heard_ = true; }
  /// Nothing happens if it was not put off. Not after it was asked for.
  void forget(Transfer& transfer) noexcept;
  /// A whole message in its record. False: there is no room for it now.
  bool send_at_once(const LinkMessage& message, ConstBuffer bytes) noexcept;

  /// Handles records that the peer has posted for channels, up to the first for somebody else. Not within a handler.
  void look() noexcept;

  /// A record without payload. Its loss would leave the other end waiting, so running out of memory gives the peer up.
  void control(const LinkMessage& message) noexcept;

  /// The peer sent a record that is of no channel (`LinkMessage::is_of_no_channel`).
  void on_record(const LinkMessage& message) noexcept;

 private:
  enum class Pushed : std::uint8_t { all, some, no_room };

  unsigned poll() noexcept override;
  unsigned push_waiting() noexcept;
  unsigned ask_late() noexcept;
  void rest_if_idle() noexcept;
  Pushed push(Transfer& transfer) noexcept;
  std::span<const std::byte> piece_of(const Transfer& transfer, std::size_t bytes) noexcept;

  Engine& engine_;
  Peer& peer_;
  PeerMappings& mappings_;
  LandingFlags flags_;
  DeviceSlots slots_;
  IntrusiveList<Transfer, &Transfer::link_hook> waiting_;
  IntrusiveList<Transfer, &Transfer::watch_hook> put_off_;  ///< Oldest first.
  bool heard_ = false;                                      ///< Since the last look at `put_off_`.
  TimePoint heard_at_{};
  std::array<std::byte, port::kLinkPayloadMax> packed_;  ///< A piece of a source that does not lie in one run.
};

}  // namespace brant
