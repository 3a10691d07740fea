#pragma once

#include <cstdint>

#include "brant/base/status.h"

namespace brant {

/// What one end tells the other apart from data, a few times per window: a record of the link, or an active message
/// where there is none.
struct ChannelControl {
  enum class Kind : std::uint32_t { opened, closed, acknowledge, truncated, not_taken, not_sent, abandoned, last };

  Kind kind = Kind::acknowledge;
  std::uint32_t channel = 0;
  std::uint32_t sender_side = 0;  ///< Side of the end that sends this control message.
  std::int32_t sender_rank = -1;
  std::uint32_t linked = 0;    ///< opened: that end does not leave all to the network. closed: how often it was opened.
  std::uint64_t prefix = 0;    ///< Of closed to abandoned: all messages before this number have landed.
  std::uint64_t number = 0;    ///< closed, last (the program there has ended): so many were sent. truncated to
                               ///< abandoned: which message.
  Status status = Status::ok;  ///< not_taken: its receive failed; not_sent: it will not come. Why.
};

}  // namespace brant
