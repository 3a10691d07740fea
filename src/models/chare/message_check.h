#pragma once

#include <cstdint>

#include "models/chare/envelope.h"
#include "models/chare/registry.h"
#include "ops/am/message.h"

namespace brant::detail {

/// Checks all that the scheduler takes for granted of a message that another process wrote: its ranks, and that what
/// its header says of the payload is there. What the arguments are only their types know; see ReadArchive.
[[nodiscard]] bool is_sound(const am::Message& message, std::int32_t ranks, const Registry& registry) noexcept;

}  // namespace brant::detail
