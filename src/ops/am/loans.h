#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/mapped_file.h"
#include "ops/am/message.h"

namespace brant::am {

/// How a large message goes from one process of a host to another: not at all. Its sender packed it in its region,
/// which the receiver maps, and the receiving service reads it there until it releases it.
///
///     sender                    receiver
///     region [record]   ->                  once: how to map it
///                       <-      mapped, or unmapped: then large messages go by the wire
///     lent [place]      ->                  a message, in its turn among the others
///                       <-      returned    it was released: its block is free, and so is its room in the window
///
/// All are records of link_service::kMessageLoan with a WireHeader. That of a lent message names its service; the
/// others, which name none, carry a note in `user`.
struct LoanNote {
  enum class Kind : std::uint32_t { region, mapped, unmapped, returned };
  Kind kind{};
  std::uint32_t reserved = 0;
  std::uint64_t place = 0;  ///< returned: of the block.
};
static_assert(sizeof(LoanNote) <= kHeaderBytesMax);

/// Of a lent message, the payload of its record.
struct LoanPlace {
  std::uint64_t place = 0;  ///< Of its block, in its sender's region.
  std::uint64_t bytes = 0;
};

/// What one process knows of its loans to and from one other.
struct Loans {
  /// Of this process's region, at the peer.
  enum class Terms : std::uint8_t { untold, told, mapped, refused };
  Terms terms = Terms::untold;
  std::vector<Message*> lent;  ///< By the peer's leave; each knows its place here (`scratch[0]`).
  std::optional<MappedFile> theirs;
};

}  // namespace brant::am
