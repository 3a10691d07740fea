#pragma once

#include <cstddef>
#include <span>

#include "ops/rma/ticket.h"

namespace brant::test {

/// What a ticket of a segment may say, every field of it something else than nothing.
inline TicketContent ticket_content(std::span<const std::byte> key) {
  TicketContent content;
  content.rank = 3;
  content.pid = 1234;
  content.id = 7;
  content.address = 0x7f00'0000'1000;
  content.bytes = 4096;
  content.kind = MemoryKind::pinned;
  content.exported = true;
  content.exports.kind = MemoryKind::pinned;
  content.exports.bytes = 8192;
  content.exports.offset = 4096;
  content.key = key;
  return content;
}

}  // namespace brant::test
