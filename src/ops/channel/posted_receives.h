#pragma once

#include "ops/channel/link_pump.h"

namespace brant {

/// The receives of one end that wait for their messages, oldest first, and what their sender was told of them. Besides
/// them its *ghosts*: receives whose owners took them back after the sender had been told. Its answer is still to come,
/// or its message, which then is for the receive that got the turn. So a number may be of a receive and of a ghost.
class PostedReceives {
 public:
  PostedReceives(ChannelEndpoint& end, LinkPump& pump) noexcept : end_(end), pump_(pump) {}

  [[nodiscard]] bool empty() const noexcept { return receives_.empty() && ghosts_.empty(); }
  [[nodiscard]] Transfer* find(std::uint64_t number) noexcept { return find_number(receives_, number); }
  [[nodiscard]] Transfer* find_ghost(std::uint64_t number) noexcept { return find_number(ghosts_, number); }
  /// The receive that its sender was told of.
  [[nodiscard]] Transfer* find_told(std::uint64_t number) noexcept {
    Transfer* ghost = find_ghost(number);
    return ghost != nullptr ? ghost : find(number);
  }
  void add(Transfer& transfer) noexcept {
    transfer.become(TransferState::posted);
    receives_.push_back(transfer);
  }
  /// The sender has nothing to do with a receive or a ghost any more, nor has a copy.
  void remove(Transfer& transfer) noexcept;
  /// Its turn is another's from now on, and its bytes come into memory of ours.
  void become_ghost(Transfer& transfer) noexcept;
  /// The owner of a ghost may free its buffer any moment; the message must not be lost.
  void divert(Transfer& ghost, std::uint64_t message_bytes) noexcept;

  /// `transfer` was added: its sender is told if that is of use.
  void tell(Transfer& transfer) noexcept {
    if (untold_ == nullptr) untold_ = &transfer;
    tell_untold();
  }
  /// Tells the sender of the next receives, as many as it may know of.
  void tell_untold() noexcept;
  /// Tells it of this one, whose message `ask` asks for; again, if it is told already, or is no more posted. One that
  /// made an offer goes on only when that was declined.
  void answer(Transfer& transfer, const LinkMessage& ask) noexcept;
  /// The sender knows of a receive by itself, which is being copied.
  void note_known() noexcept { ++known_; }
  /// The last message that was asked for was one to be copied from where it is, or not: if it was, there is no need to
  /// tell of receives in host memory.
  void note_offers(bool come) noexcept { offers_come_ = come; }

 private:
  using Receives = IntrusiveList<Transfer, &Transfer::link_hook>;

  [[nodiscard]] bool is_to_be_told(const Transfer& transfer) const noexcept;
  void tell_landing(Transfer& transfer, LinkMessage::Kind as, LinkMessage::Place place) noexcept;

  ChannelEndpoint& end_;
  LinkPump& pump_;
  Receives receives_;
  Receives ghosts_;
  Transfer* untold_ = nullptr;  ///< Of `receives_` the first that the sender may yet have to be told of.
  unsigned known_ = 0;          ///< Receives that the sender knows of, ghosts too.
  bool offers_come_ = false;
};

}  // namespace brant
