#pragma once

#include <cstddef>
#include <cstdint>

#include "base/file_box.h"
#include "brant/base/status.h"
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
///                         <-    fetch        an allocation that is mapped by means of a file: into which box it goes
///     handed              ->                 it lies there, or why not
struct MappingMessage {
  enum class Kind : std::uint8_t { exported, withdrawn, watch, watched, closed, fetch, handed };

  Kind kind = Kind::exported;
  std::uint16_t outcome = 0;      ///< handed: a Status.
  std::uint32_t withdrawals = 0;  ///< closed: so many of them are answered.
  std::uint64_t buffer_id = 0;    ///< But for exported: of the allocation.
  std::uint64_t address = 0;      ///< watch, fetch: in the owner's process; 0: the owner knows it by its id.
  std::uint64_t number = 0;       ///< fetch, handed: of the file in the box.
  FileBox::Name box = {};         ///< fetch.
};
static_assert(sizeof(MappingMessage) <= port::kLinkHeaderBytes);

/// Posts one that has no payload. False: memory is exhausted.
bool post(port::Link& link, const MappingMessage& message) noexcept;
/// Reads the header of such a record, which another process wrote. False: no process of ours posts one like that.
[[nodiscard]] bool read_mapping_message(const std::byte* header, std::size_t payload_bytes,
                                        MappingMessage& message) noexcept;

}  // namespace brant
