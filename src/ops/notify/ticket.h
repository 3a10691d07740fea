#pragma once

#include <cstdint>

#include "brant/notify/bell.h"
#include "port/memory.h"

namespace brant {

/// What a BellTicket says. The bytes come from anywhere: nothing of them is used before `unpack_ticket` took them for
/// whole.
struct TicketOfBell {
  std::int32_t rank = -1;
  std::int64_t pid = 0;
  std::uint32_t number = 0;
  std::uint64_t address = 0;  ///< Of the word, in the owner's process.
  port::ExportRecord record;  ///< Of the word.
};

BellTicket pack_ticket(const TicketOfBell& content);
/// Throws invalid_argument, version_mismatch.
TicketOfBell unpack_ticket(const BellTicket& ticket);

}  // namespace brant
