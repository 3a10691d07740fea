#pragma once

#include "ops/channel/transfer.h"

namespace brant {

/// The copies that brant itself makes of one end's messages, and the pinned buffers that they go through. What moves
/// the bytes is `ops/mover`; this lends its records, and says what an ended copy means for a message.
class ChannelMoves {
 public:
  explicit ChannelMoves(ChannelEndpoint& end) noexcept : end_(end) {}

  /// The source of a send was device memory when it was posted, and is no more, or another allocation: a kernel that
  /// reads it would end all work of the device.
  [[nodiscard]] bool source_is_gone(const Transfer& transfer) const noexcept;
  void end_without_source(Transfer& transfer) noexcept;
  struct Copy {
    MoveEnd to;
    MoveEnd from;
    std::size_t bytes = 0;
    const TransferShapes* shapes = nullptr;
    Path path = Path::automatic;
    MappingLease mapped{};  ///< Of memory of the other end.
    CopySignal signal{};
  };
  /// Makes a copy for `transfer`, which is in state `as` from then on. As `Mover::start`; limit_reached: there is no
  /// record for it. Nothing has happened then, or after other failures.
  Status start(Transfer& transfer, TransferState as, Copy copy) noexcept;
  /// Gets a transfer the record of a copy, which goes with it: `transfer.move`. limit_reached.
  Status take(Transfer& transfer) noexcept;
  /// Gets it a pinned buffer besides; or why there is none.
  Status lease_stage(Transfer& transfer, std::size_t bytes) noexcept;
  void give_back(Transfer& transfer) noexcept;
  /// A message that came complete goes to its receive's landing, or into a pinned buffer on the way there. ok,
  /// truncated. Others: there is no such buffer.
  Status land(Transfer& transfer, std::span<const std::byte> message) noexcept;
  /// Its bytes lie in `shape` behind `transfer.buffer.data`, from now to its end. limit_reached.
  Status lay(Transfer& transfer, const Shape& shape) noexcept;
  /// Device memory of the path staged, or that the network was to take and cannot now; and a shape that nobody can
  /// apply on the way.
  [[nodiscard]] bool needs_stage(Transfer& transfer) noexcept;
  /// Copies the source into a pinned buffer first; the send goes on from there. ok (of what is copied by the CPU),
  /// in_progress, or why not.
  Status stage_out(Transfer& transfer) noexcept;
  /// Copies so much of what came in a pinned buffer to where its user wants it. As `stage_out`.
  Status stage_in(Transfer& transfer, std::size_t bytes) noexcept;
  /// The rest of the latter is not copied: nobody wants it any more. False: a device copies it, and that goes on.
  bool stop_staging(Transfer& transfer) noexcept;

 private:
  [[nodiscard]] bool shape_needs_stage(Transfer& transfer) const noexcept;
  Status stage(Transfer& transfer, const Buffer& to, const Buffer& from) noexcept;
  void ended(Transfer& transfer, Status status) noexcept;

  static const MoveEvents kEvents;

  ChannelEndpoint& end_;
};

}  // namespace brant
