#pragma once

#include <optional>

#include "ops/channel/endpoint.h"

namespace brant {

/// Receives the next message, or message `number` (see ChannelReceives::post_at), into a shape that is laid on
/// `landing`.
Status receive_in_shape(ChannelEndpoint& end, Buffer landing, const Shape& shape, Op& op,
                        std::optional<std::uint64_t> number = std::nullopt) noexcept;

}  // namespace brant
