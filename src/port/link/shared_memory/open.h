#pragma once

#include <cstdint>
#include <memory>

#include "port/link.h"

namespace brant::port {

/// Links with the other processes of this host. `places`: how many processes it has, this one included. Null, with the
/// reason in the log, if this process cannot share memory at all.
std::unique_ptr<Links> open_links(std::uint32_t places) noexcept;

}  // namespace brant::port
