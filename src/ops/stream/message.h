#pragma once

#include <cstddef>
#include <cstdint>

#include "port/link.h"
#include "port/memory.h"

namespace brant {

/// The header of the records by which two ends of a StreamChannel meet, and part (link_service::kStream). Each opening
/// of an end has a number of its own in its process, so that no record of an earlier one is taken for word of a later.
///
///     either end                other end
///     mailbox [record]   ->                 how to map the mailbox of this opening
///                        <-    ready        it is mapped: kernels of the other end may run
///                        <-    refused      it cannot be mapped, or nothing can go any more
///     base               ->                 the number of an allocation that messages land in
///                        <-    unmapped     it cannot be mapped
///     closed             ->                 nothing comes from this opening any more
///                        <-    released     nothing over there uses its mailbox any more: the answer to each mailbox,
///                                           sooner or later
struct StreamMessage {
  enum class Kind : std::uint8_t { mailbox, ready, refused, base, unmapped, closed, released };

  Kind kind = Kind::mailbox;
  std::uint8_t from_side = 0;  ///< Side of the end that posts this record.
  std::uint16_t number = 0;    ///< base, unmapped: below StreamMailbox::kBases.
  std::uint32_t channel = 0;
  std::uint64_t opening = 0;    ///< Of the end that posts this record; 0: none is open there.
  std::uint64_t meets = 0;      ///< ready, refused, base, unmapped, released: the opening this is for.
  std::uint64_t buffer_id = 0;  ///< base: of the allocation, of which the other end was told (see MappingMessage).
};
static_assert(sizeof(StreamMessage) <= port::kLinkHeaderBytes);

/// Reads the header of such a record, which another process wrote. False: no end of ours posts one like that.
[[nodiscard]] bool read_stream_message(const std::byte* header, std::size_t payload_bytes,
                                       StreamMessage& message) noexcept;

/// A mailbox of the other end that may be mapped.
struct StreamOffer {
  std::uint64_t opening = 0;  ///< 0: there is none.
  port::ExportRecord record;
};

}  // namespace brant
