#pragma once

#include <optional>
#include <span>

#include "ops/channel/link_arrivals.h"
#include "ops/channel/link_pump.h"

namespace brant {

struct LostMessage;

/// The receiving half of a channel's end whose peer shares memory with this process: matches messages and receives by
/// number. See LinkMessage for the protocol.
class LinkReceiver {
 public:
  LinkReceiver(ChannelEndpoint& endpoint, LinkPump& pump) noexcept;
  LinkReceiver(const LinkReceiver&) = delete;
  LinkReceiver& operator=(const LinkReceiver&) = delete;

  /// Into `transfer.here`. ok, truncated: it was there already. in_progress: `ChannelEndpoint::carried` will be called.
  Status receive(Transfer& transfer) noexcept;
  /// A message has come, or word of it, and no receive.
  [[nodiscard]] bool came(std::uint64_t number) noexcept { return arrivals_.has(number); }
  struct Whole {
    std::size_t bytes = 0;
    bool acknowledged = false;
  };
  /// Copies a message that came complete into its landing. Nothing if it is no such message, or too long.
  std::optional<Whole> take_whole(std::uint64_t number, Buffer landing) noexcept;
  /// A record for this half. `payload` is valid during the call.
  void on_message(const LinkMessage& message, std::span<const std::byte> payload) noexcept;
  /// The sender's device says that a message lies in its landing.
  void on_landed_early(Transfer& transfer, std::size_t bytes, bool acknowledged) noexcept;
  /// A message was copied out of its slot.
  void on_unloaded(Transfer& transfer) noexcept;
  /// A message was copied from the sender's memory.
  void on_pulled(Transfer& transfer) noexcept;
  /// A message can never be had: its receive ends, if there is one and it is not with the network. False if not; what
  /// was known of the message is forgotten.
  bool end_lost(const LostMessage& message) noexcept;
  /// Nothing is kept, and no receive waits.
  [[nodiscard]] bool empty() const noexcept { return posted_.empty() && ghosts_.empty() && arrivals_.empty(); }
  /// Nobody will receive a message: what came of it goes, and the sender gets its source back.
  void drop(std::uint64_t number) noexcept;
  /// A receive of a message that comes over the network was withdrawn: the next receive must find word of it.
  void on_withdrawn_elsewhere(Transfer& transfer) noexcept;
  /// Withdraws a pending receive; the outcome comes by `carried`, now or later. False if it is with the network.
  bool withdraw(Transfer& transfer, bool for_good) noexcept;

 private:
  using Receives = IntrusiveList<Transfer, &Transfer::link_hook>;

  void grow_if_small(std::uint64_t number) noexcept;
  static Transfer* find(const Receives& receives, std::uint64_t number) noexcept;
  [[nodiscard]] bool is_to_be_told(const Transfer& transfer) const noexcept;
  void tell_untold() noexcept;
  void unlist(Transfer& transfer) noexcept;
  void announce(Transfer& transfer, LinkMessage::Kind as = LinkMessage::Kind::landing) noexcept;
  void tell_landing(Transfer& transfer, LinkMessage::Kind as) noexcept;
  void leave(Transfer& transfer) noexcept;
  void stop_pulling(Transfer& transfer) noexcept;
  void end(Transfer& transfer, Status status) noexcept;
  void become_ghost(Transfer& transfer) noexcept;
  void end_ghost(std::uint64_t number) noexcept;

  void on_whole(const LinkMessage& message, std::span<const std::byte> payload) noexcept;
  void on_ask(const LinkMessage& message) noexcept;
  Status pull(Transfer& transfer, const LinkMessage& message) noexcept;
  static void came_by(Transfer& transfer, Path path) noexcept;
  void tell_taken(std::uint64_t number) noexcept;
  void on_piece(const LinkMessage& message, std::span<const std::byte> payload) noexcept;
  void on_elsewhere(const LinkMessage& message) noexcept;
  static bool may_have_landed(const Transfer& transfer, std::uint64_t bytes) noexcept;
  void on_landed(const LinkMessage& message) noexcept;
  void on_stored(const LinkMessage& message) noexcept;
  Status unload(Transfer& transfer, const LinkMessage& message) noexcept;
  void landed_too_late(Transfer& ghost, std::uint64_t bytes) noexcept;
  void on_failed(const LinkMessage& message) noexcept;
  void on_abandoned(const LinkMessage& message) noexcept;
  void lose(const LinkMessage& message, Status status) noexcept;
  void dismiss(const LinkMessage& message) noexcept;
  void on_truncated(const LinkMessage& message) noexcept;
  void on_retracted(const LinkMessage& message) noexcept;

  Status receive_elsewhere(Transfer& transfer, const LinkMessage& message) noexcept;
  Status take(Transfer& transfer, Arrival& arrival) noexcept;
  Status land(Transfer& transfer, const LinkMessage& message, std::span<const std::byte> payload) noexcept;
  void keep(const LinkMessage& message, std::span<const std::byte> payload) noexcept;
  void divert(Transfer& ghost, std::uint64_t message_bytes) noexcept;
  void hand_over(Transfer& ghost) noexcept;
  [[nodiscard]] LinkMessage word_of(LinkMessage::Kind kind, const Transfer& transfer,
                                    std::uint64_t bytes) const noexcept;
  void distrust(const char* what) noexcept;

  ChannelEndpoint& endpoint_;
  LinkPump& pump_;
  Receives posted_;  ///< Oldest first; messages nearly always match the first.
  /// Receives whose owners took them back after the sender had been told: its answer is still to come, or its message.
  /// Their turn was given to the next receive, so a number may be here and in `posted_`.
  Receives ghosts_;
  LinkArrivals arrivals_;
  unsigned announced_ = 0;
  Transfer* untold_ = nullptr;  ///< Of `posted_` the first that the sender may yet have to be told of.
  /// The last message that was asked for was one to be copied from where it is: no need to tell of receives in host
  /// memory.
  bool offers_come_ = false;
};

}  // namespace brant
