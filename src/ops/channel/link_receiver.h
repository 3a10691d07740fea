#pragma once

#include <span>

#include "ops/channel/link_arrivals.h"
#include "ops/channel/posted_receives.h"

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
  /// Messages, or word of them, that have come and have no receive.
  [[nodiscard]] LinkArrivals& arrivals() noexcept { return arrivals_; }
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
  [[nodiscard]] bool empty() const noexcept { return posted_.empty() && arrivals_.empty(); }
  /// Nobody will receive a message: what came of it goes, and the sender gets its source back.
  void drop(std::uint64_t number) noexcept;
  /// A receive of a message that comes over the network was withdrawn: the next receive must find word of it.
  void on_withdrawn_elsewhere(Transfer& transfer) noexcept;
  /// Withdraws a pending receive; the outcome comes by `carried`, now or later. False if it is with the network.
  bool withdraw(Transfer& transfer, bool for_good) noexcept;

 private:
  void grow_if_small(std::uint64_t number) noexcept;
  void leave(Transfer& transfer) noexcept;
  void end(Transfer& transfer, Status status) noexcept;
  void end_ghost(std::uint64_t number) noexcept;
  void complete(Transfer& transfer) noexcept;

  void arrive(const LinkMessage& message, std::span<const std::byte> payload) noexcept;
  Status take(Transfer& transfer, const LinkMessage& message, std::span<const std::byte> payload) noexcept;
  Status take(Transfer& transfer, Arrival& arrival) noexcept;
  Status unload(Transfer& transfer, const LinkMessage& message) noexcept;
  Status receive_elsewhere(Transfer& transfer, const LinkMessage& message) noexcept;
  void on_ask(const LinkMessage& message) noexcept;
  Status answer(Transfer& transfer, const LinkMessage& ask) noexcept;
  Status pull(Transfer& transfer, const LinkMessage& message) noexcept;
  void tell_taken(std::uint64_t number) noexcept;
  void on_piece(const LinkMessage& message, std::span<const std::byte> payload) noexcept;
  void on_landed(const LinkMessage& message) noexcept;
  void landed_too_late(Transfer& ghost, std::uint64_t bytes) noexcept;
  void on_abandoned(const LinkMessage& message) noexcept;

  void keep(const LinkMessage& message, std::span<const std::byte> payload) noexcept;
  void dismiss(const LinkMessage& message) noexcept;
  void lose(const LinkMessage& message, Status status) noexcept;
  void hand_over(Transfer& ghost) noexcept;
  [[nodiscard]] LinkMessage word_of(LinkMessage::Kind kind, const Transfer& transfer,
                                    std::uint64_t bytes) const noexcept;
  void distrust(const char* what) noexcept;

  ChannelEndpoint& endpoint_;
  LinkPump& pump_;
  PostedReceives posted_;
  LinkArrivals arrivals_;
};

}  // namespace brant
