#pragma once

#include <cstddef>
#include <span>

#include "ops/channel/control.h"
#include "ops/channel/link_message.h"

namespace brant {

/// Reads the header of a channel's record, which another process wrote, and checks all of it that needs no knowledge of
/// what is under way. `header` has kLinkHeaderBytes. False: no end of ours posts such a record.
[[nodiscard]] bool read_link_record(const std::byte* header, std::size_t payload_bytes, LinkMessage& message) noexcept;

/// A control message as a record of the link, and what such a record of `rank` says.
[[nodiscard]] LinkMessage packed(const ChannelControl& control) noexcept;
[[nodiscard]] ChannelControl unpacked(const LinkMessage& message, std::int32_t rank) noexcept;

/// The same of a control message of the network. What could be read of it is in `control` in any case: it names its
/// sender by itself.
[[nodiscard]] bool read_channel_control(std::span<const std::byte> header, ChannelControl& control) noexcept;

}  // namespace brant
