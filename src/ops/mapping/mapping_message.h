#pragma once

#include <cstddef>
#include <cstdint>

#include "port/link.h"

namespace brant {

/// The header of the records by which two processes tell each other what they may map (link_service::kMapping):
///
///     owner                     peer
///     exported [record]   ->                 how to map an allocation, once for each
///                         <-    watch        the peer has learnt that another way, and wants to hear of its end
///     watched             ->                 it will; and of all that died before in the same block it has heard
///     withdrawn           ->                 that allocation was freed, or is told anew when it is needed again
///                         <-    closed       what was withdrawn is mapped no more, or was told anew before it was
///                         unmapped
struct MappingMessage {
  enum class Kind : std::uint8_t { exported, withdrawn, watch, watched, closed };

  Kind kind = Kind::exported;
  std::uint32_t withdrawals = 0;  ///< closed: so many of them are answered.
  std::uint64_t buffer_id = 0;    ///< withdrawn, watch, watched, closed: of the allocation.
  std::uint64_t address = 0;      ///< watch: in the owner's process.
};
static_assert(sizeof(MappingMessage) <= port::kLinkHeaderBytes);

/// Reads the header of such a record, which another process wrote. False: no process of ours posts one like that.
[[nodiscard]] bool read_mapping_message(const std::byte* header, std::size_t payload_bytes,
                                        MappingMessage& message) noexcept;

}  // namespace brant
