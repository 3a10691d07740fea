#pragma once

#include "core/engine.h"
#include "ops/mover/move.h"

namespace brant {

class RmaTarget;

/// The runtime's record of one put or get, lent from post to completion.
struct RmaTransfer final : OpOwner, PeerOp, Move {
  RmaTransfer(RmaTarget& target_in, const MoveEvents& events_in) noexcept : Move(events_in), target(target_in) {}

  bool is_put = false;          // in what Move leaves of its last word
  bool waits_to_begin = false;  ///< It is in RmaTarget::awaiting_.
  RmaTarget& target;
  TimePoint posted_at{};         ///< Exact only with a trace.
  bool* word_was_set = nullptr;  ///< Of a WordBehind.
};

}  // namespace brant
