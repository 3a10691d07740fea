#include "ops/channel/link_record.h"

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

bool status_fits(const LinkMessage& message) noexcept {
  return (message.kind != Kind::failed && message.kind != Kind::control) ||
         (message.offset <= kStatusMax && is_status(static_cast<Status>(message.offset)));
}

/// The last words of a program go with its farewell, over the network.
bool control_fits(const LinkMessage& message) noexcept {
  return message.kind != Kind::control || (message.flag < static_cast<std::uint64_t>(ChannelControl::Kind::last) &&
                                           message.buffer_id <= std::numeric_limits<std::uint32_t>::max());
}

}  // namespace

bool read_link_record(const std::byte* header, std::size_t payload_bytes, LinkMessage& message) noexcept {
  // A bool holds 0 or 1, or reading it is undefined.
  if (std::to_integer<unsigned>(header[offsetof(LinkMessage, acknowledged)]) > 1) return false;
  std::memcpy(&message, header, sizeof(message));
  return message.kind <= Kind::control && message.place <= LinkMessage::Place::other && message.from_side <= 1 &&
         message.channel <= reserved_id::kLast && status_fits(message) && payload_fits(message, payload_bytes) &&
         control_fits(message);
}

LinkMessage packed(const ChannelControl& control) noexcept {
  LinkMessage message;
  message.kind = Kind::control;
  message.from_side = static_cast<std::uint8_t>(control.sender_side);
  message.channel = control.channel;
  message.number = control.number;
  message.bytes = control.prefix;
  message.offset = static_cast<std::uint64_t>(control.status) & LinkMessage::kOffsetMask;
  message.flag = static_cast<std::uint16_t>(control.kind);
  message.buffer_id = control.linked;
  return message;
}

ChannelControl unpacked(const LinkMessage& message, std::int32_t rank) noexcept {
  return {static_cast<ChannelControl::Kind>(message.flag),
          message.channel,
          message.from_side,
          rank,
          static_cast<std::uint32_t>(message.buffer_id),
          message.bytes,
          message.number,
          static_cast<Status>(message.offset)};
}

bool read_channel_control(std::span<const std::byte> header, ChannelControl& control) noexcept {
  if (header.size() != sizeof(control)) return false;
  std::memcpy(&control, header.data(), sizeof(control));
  return control.kind <= ChannelControl::Kind::last && control.channel <= reserved_id::kLast &&
         control.sender_side <= 1 && is_status(control.status);
}

}  // namespace brant
