#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "brant/base/buffer.h"
#include "brant/ops/rma.h"
#include "port/memory.h"

namespace brant {

/// What a ticket says. The bytes of a ticket come from anywhere: nothing of them is used before `unpack_ticket` took
/// them for whole.
struct TicketContent {
  std::int32_t rank = -1;
  std::int64_t pid = 0;       ///< Tickets of an earlier job may still lie around.
  std::uint64_t id = 0;       ///< See ExposedSegment.
  std::uint64_t address = 0;  ///< In the owner's process.
  std::uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::detect;
  bool exported = false;           ///< `exports` is valid: peers of the host can map the memory.
  port::ExportRecord exports;      ///< Of the segment's first byte.
  std::span<const std::byte> key;  ///< Of the network; empty if it does not take the memory.
};

/// Leaves the key out if it is too long for a ticket.
SegmentTicket pack_ticket(const TicketContent& content);

/// `key` points into `ticket`. Throws invalid_argument (no ticket, or a damaged one), version_mismatch.
TicketContent unpack_ticket(const SegmentTicket& ticket);

}  // namespace brant
