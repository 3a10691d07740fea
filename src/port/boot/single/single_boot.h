#pragma once

#include <memory>

#include "port/boot.h"

namespace brant::port {

/// A job of one process: rank 0 of 1, values kept in memory. Never fails, talks to nobody.
std::unique_ptr<Boot> open_single_boot();

}  // namespace brant::port
