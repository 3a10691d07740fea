#pragma once

#include "ops/channel/link_pump.h"

namespace brant {

/// Receives of one end whose owners took them back after the sender had been told: its answer is still to come, or its
/// message, which then is for the receive that got the turn. So a number may be here and among those that are posted.
class GhostReceives {
 public:
  explicit GhostReceives(ChannelEndpoint& end) noexcept : end_(end) {}

  [[nodiscard]] bool empty() const noexcept { return ghosts_.empty(); }
  [[nodiscard]] Transfer* find(std::uint64_t number) noexcept {
    Transfer* ghost = ghosts_.front();
    while (ghost != nullptr && ghost->number != number) ghost = decltype(ghosts_)::next(*ghost);
    return ghost;
  }
  /// Its turn is another's from now on, and its bytes come into memory of ours.
  void add(Transfer& transfer) noexcept;
  void remove(Transfer& ghost) noexcept { ghosts_.remove(ghost); }
  /// The owner of a ghost may free its buffer any moment; the message must not be lost.
  void divert(Transfer& ghost, std::uint64_t message_bytes) noexcept;

 private:
  ChannelEndpoint& end_;
  IntrusiveList<Transfer, &Transfer::link_hook> ghosts_;
};

}  // namespace brant
