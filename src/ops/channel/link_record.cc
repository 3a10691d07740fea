#include "ops/channel/link_record.h"

#include <cstring>

#include "ops/channel/reserved_ids.h"
#include "port/memory.h"

namespace brant {
namespace {

using Kind = LinkMessage::Kind;

bool payload_fits(const LinkMessage& message, std::size_t payload_bytes) noexcept {
  switch (message.kind) {
    case Kind::eager: return payload_bytes == message.bytes && payload_bytes <= kEagerBytes;
    case Kind::data:
      return payload_bytes != 0 && message.offset <= message.bytes && payload_bytes <= message.bytes - message.offset;
    case Kind::exported:
    case Kind::stream_mailbox: return payload_bytes == sizeof(port::ExportRecord);
    default: return payload_bytes == 0;
  }
}

}  // namespace

bool read_link_record(const std::byte* header, std::size_t payload_bytes, LinkMessage& message) noexcept {
  // A bool holds 0 or 1, or reading it is undefined.
  if (std::to_integer<unsigned>(header[offsetof(LinkMessage, acknowledged)]) > 1) return false;
  std::memcpy(&message, header, sizeof(message));
  return message.kind <= Kind::stream_refused && message.place <= LinkMessage::Place::other && message.from_side <= 1 &&
         message.channel <= reserved_id::kLast && payload_fits(message, payload_bytes);
}

}  // namespace brant
