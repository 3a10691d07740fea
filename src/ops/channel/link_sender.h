#pragma once

#include <optional>
#include <vector>

#include "ops/channel/link_pump.h"

namespace brant {

/// The sending half of a channel's end whose peer shares memory with this process: decides how each message goes and
/// agrees with the receiver on it. See LinkMessage for the protocol.
class LinkSender {
 public:
  LinkSender(ChannelEndpoint& endpoint, LinkPump& pump) noexcept : endpoint_(endpoint), pump_(pump) {}

  /// Sends `transfer.here`. ok: all of it went. in_progress: `ChannelEndpoint::carried` will be called.
  Status send(Transfer& transfer) noexcept;
  /// A message of at most `kEagerBytes` in host memory, without a record of it. False: there is no room for it now.
  bool send_at_once(std::uint64_t number, ConstBuffer bytes) noexcept;
  /// The receiver can map this host memory. Asks what it is, and tells the receiver how to, as a send does.
  [[nodiscard]] bool can_offer(ConstBuffer bytes) noexcept;
  /// Before a message is sent that would have to wait for word of its receive: it may be there.
  void look_for_landing(std::uint64_t number) noexcept;
  void on_landing(const LinkMessage& message) noexcept;
  void on_retract(const LinkMessage& message) noexcept;
  /// The receiver has copied a message from where it was.
  void on_taken(const LinkMessage& message) noexcept;
  /// No word came of a receive in time.
  void ask_late(Transfer& transfer) noexcept;
  /// A message goes into a slot, since its receive is late. False if it cannot.
  bool send_early(Transfer& transfer, std::uint16_t slot) noexcept;
  /// The device has written a message into its mapped landing or its slot, or failed to.
  void copied(Transfer& transfer, Status status) noexcept;
  /// Nobody observes a send any more, and its source is to be free soon.
  void let_go(Transfer& transfer) noexcept;
  /// The receiver counts on a message that failed here.
  void tell_not_sent(Transfer& transfer, Status why) noexcept;
  /// Gives a pending send up because the peer is lost or refused. False if it is with the network, not here.
  bool withdraw(Transfer& transfer) noexcept;

 private:
  /// Word of a receive over there that has room for a large message, known before the message is sent.
  using Landing = LinkMessage;

  /// Of a place in `landings_`.
  [[nodiscard]] static bool is_known(const Landing& place) noexcept { return place.kind != LinkMessage::Kind::eager; }
  [[nodiscard]] bool knows_landing(std::uint64_t number) const noexcept {
    if (landings_known_ == 0) return false;
    const Landing& landing = landings_[number % landings_.size()];
    return is_known(landing) && landing.number == number;
  }
  std::optional<Landing> take_landing(std::uint64_t number) noexcept;
  bool offer(Transfer& transfer, const std::optional<Landing>& landing) noexcept;
  bool locate(ConstBuffer bytes, LinkMessage& message) noexcept;
  void await_landing(Transfer& transfer) noexcept;
  LinkMessage question(Transfer& transfer) noexcept;
  [[nodiscard]] bool may_go_direct(const Transfer& transfer) const noexcept;
  void ask(Transfer& transfer, const LinkMessage& message) noexcept;
  void end_asking(Transfer& transfer) noexcept;
  void keep_copy(Transfer& transfer) noexcept;
  void tell_copied(Transfer& transfer) noexcept;
  Status start(Transfer& transfer, const Landing& landing) noexcept;
  Status start_to_host(Transfer& transfer, const Landing& landing) noexcept;
  Status send_over_network(Transfer& transfer, const Landing& landing) noexcept;
  Status start_copy(Transfer& transfer, MappedMemory target, MemoryKind to, std::uint16_t flag) noexcept;
  void remember(const Landing& landing) noexcept;
  bool grow_landings() noexcept;
  Status send_elsewhere(Transfer& transfer) noexcept;

  ChannelEndpoint& endpoint_;
  LinkPump& pump_;
  /// By number, tuned::kAnnouncedMax at most, and none while none was told. A message whose landing found no place asks
  /// for it.
  std::vector<Landing> landings_;
  unsigned landings_known_ = 0;
  IntrusiveList<Transfer, &Transfer::link_hook> asking_;
  bool told_unasked_ = false;  ///< The receiver tells of its receives by itself, as far as is known: no need to ask.
  unsigned not_direct_ = 0;    ///< The same of messages of a device to host memory that it does not reach.
  unsigned not_asked_ = 0;     ///< Small messages from now on of which it is taken that they cannot be mapped.
};

}  // namespace brant
