#pragma once

#include <cstdint>

#include "core/peer.h"
#include "ops/am/loans.h"
#include "ops/am/message.h"

namespace brant::am {

class Messenger;

/// What is known of one peer: both directions.
struct MessengerLink final : PeerOp {
  /// The credit message to the peer; there is never more than one under way.
  struct Credit final : port::WireOp {
    bool busy = false;
    bool owed = false;
  };

  Messenger* messenger = nullptr;
  Peer* peer = nullptr;
  Status trouble = Status::ok;
  std::uint32_t next_sequence = 0;      ///< Of the next message to it.
  std::uint32_t sent_units = 0;         ///< To it so far (modulo 2^32).
  std::uint32_t acknowledged = 0;       ///< Of these, released there.
  std::uint32_t expected_sequence = 0;  ///< Of the next message from it.
  std::uint32_t consumed = 0;           ///< Units from it that were released here.
  std::uint32_t reported = 0;           ///< What it knows of that.
  MessageList arrivals;                 ///< Came early, or wait for their payload. Sorted.
  Credit credit;
  Loans loans;
};

}  // namespace brant::am
