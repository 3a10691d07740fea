#include "ops/stream/message.h"

#include <cstring>

#include "brant/base/ids.h"
#include "ops/stream/mailbox.h"

namespace brant {

bool read_stream_message(const std::byte* header, std::size_t payload_bytes, StreamMessage& message) noexcept {
  using Kind = StreamMessage::Kind;
  std::memcpy(&message, header, sizeof(message));
  if (message.kind > Kind::released || message.from_side > 1 || message.channel > kChannelIdMax) return false;
  if (message.number >= StreamMailbox::kBases) return false;
  const bool of_an_opening = message.kind == Kind::mailbox || message.kind == Kind::closed;
  if (of_an_opening ? message.opening == 0 : message.meets == 0) return false;
  return payload_bytes == (message.kind == Kind::mailbox ? sizeof(port::ExportRecord) : 0);
}

}  // namespace brant
