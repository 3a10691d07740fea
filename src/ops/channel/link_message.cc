#include "ops/channel/link_message.h"

#include <cstring>
#include <limits>

#include "ops/channel/reserved_ids.h"

namespace brant {
namespace {

using Kind = LinkMessage::Kind;

constexpr std::uint64_t kStatusMax = std::numeric_limits<std::int32_t>::max();

bool is_status(Status status) noexcept { return status_name(status) != "unknown"; }

bool payload_fits(const LinkMessage& message, std::size_t payload_bytes) noexcept {
  switch (message.kind) {
    case Kind::eager: return payload_bytes == message.bytes && payload_bytes <= kEagerBytes;
    case Kind::data:
      return payload_bytes != 0 && message.offset <= message.bytes && payload_bytes <= message.bytes - message.offset;
    default: return payload_bytes == 0;
  }
}

}  // namespace

bool read_link_record(const std::byte* header, std::size_t payload_bytes, LinkMessage& message) noexcept {
  // A bool holds 0 or 1, or reading it is undefined.
  if (std::to_integer<unsigned>(header[offsetof(LinkMessage, acknowledged)]) > 1) return false;
  std::memcpy(&message, header, sizeof(message));
  const bool status_fits =
      message.kind != Kind::failed || (message.offset <= kStatusMax && is_status(static_cast<Status>(message.offset)));
  return message.kind <= Kind::slot_emptied && message.place <= LinkMessage::Place::other && message.from_side <= 1 &&
         message.channel <= reserved_id::kLast && status_fits && payload_fits(message, payload_bytes);
}

bool read_channel_control(std::span<const std::byte> header, ChannelControl& control) noexcept {
  if (header.size() != sizeof(control)) return false;
  std::memcpy(&control, header.data(), sizeof(control));
  return control.kind >= ChannelControl::Kind::opened && control.kind <= ChannelControl::Kind::last &&
         control.channel <= reserved_id::kLast && control.sender_side <= 1 && is_status(control.status);
}

}  // namespace brant
