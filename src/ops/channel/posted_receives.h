#pragma once

#include "ops/channel/link_pump.h"

namespace brant {

/// The receives of one end that wait for their messages, oldest first, and what their sender was told of them.
class PostedReceives {
 public:
  PostedReceives(ChannelEndpoint& end, LinkPump& pump) noexcept : end_(end), pump_(pump) {}

  [[nodiscard]] bool empty() const noexcept { return receives_.empty(); }
  /// Messages nearly always match the first.
  [[nodiscard]] Transfer* find(std::uint64_t number) noexcept {
    Transfer* transfer = receives_.front();
    while (transfer != nullptr && transfer->number != number) transfer = Receives::next(*transfer);
    return transfer;
  }
  void add(Transfer& transfer) noexcept {
    transfer.become(TransferState::posted);
    receives_.push_back(transfer);
  }
  void remove(Transfer& transfer) noexcept {
    if (untold_ == &transfer) untold_ = Receives::next(transfer);
    receives_.remove(transfer);
  }

  /// `transfer` was added: its sender is told if that is of use.
  void tell(Transfer& transfer) noexcept {
    if (untold_ == nullptr) untold_ = &transfer;
    tell_untold();
  }
  /// Tells the sender of the next receives, as many as it may know of.
  void tell_untold() noexcept;
  /// Tells it of this one. `place`: of the message, as its sender says.
  void announce(Transfer& transfer, LinkMessage::Kind as = LinkMessage::Kind::landing,
                LinkMessage::Place place = LinkMessage::Place::host) noexcept;
  /// The same of one that it was told of already, or that is no more posted.
  void tell_landing(Transfer& transfer, LinkMessage::Kind as, LinkMessage::Place place) noexcept;
  /// The sender knows of one more by itself, or of one less.
  void note_known(int change) noexcept { known_ += static_cast<unsigned>(change); }
  /// The last message that was asked for was one to be copied from where it is, or not: if it was, there is no need to
  /// tell of receives in host memory.
  void note_offers(bool come) noexcept { offers_come_ = come; }

 private:
  using Receives = IntrusiveList<Transfer, &Transfer::link_hook>;

  [[nodiscard]] bool is_to_be_told(const Transfer& transfer) const noexcept;

  ChannelEndpoint& end_;
  LinkPump& pump_;
  Receives receives_;
  Transfer* untold_ = nullptr;  ///< Of `receives_` the first that the sender may yet have to be told of.
  unsigned known_ = 0;          ///< Receives that the sender knows of, ghosts too.
  bool offers_come_ = false;
};

}  // namespace brant
