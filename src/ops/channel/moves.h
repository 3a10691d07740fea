#pragma once

#include "ops/channel/transfer.h"

namespace brant {

/// The copies that brant itself makes of one end's messages, and the pinned buffers that they go through. What moves
/// the bytes is `ops/mover`; this lends its records, and says what an ended copy means for a message.
class ChannelMoves {
 public:
  explicit ChannelMoves(ChannelEndpoint& end) noexcept : end_(end) {}

  /// Gets a transfer the record of a copy, which goes with it: `transfer.move`. limit_reached.
  Status take(Transfer& transfer) noexcept;
  /// Gets it a pinned buffer besides; or why there is none.
  Status lease_stage(Transfer& transfer, std::size_t bytes) noexcept;
  void give_back(Transfer& transfer) noexcept;
  /// Device memory of the path staged, or that the network was to take and cannot now.
  [[nodiscard]] bool needs_stage(Transfer& transfer) noexcept;
  /// Copies the source into a pinned buffer first; the send goes on from there. in_progress, or why not.
  Status stage_out(Transfer& transfer) noexcept;
  /// Copies so much of what came in a pinned buffer to the device. in_progress, or why not.
  Status stage_in(Transfer& transfer, std::size_t bytes) noexcept;

 private:
  Status stage(Transfer& transfer, const Buffer& to, const Buffer& from) noexcept;
  void ended(Transfer& transfer, Status status) noexcept;

  static const MoveEvents kEvents;

  ChannelEndpoint& end_;
};

}  // namespace brant
