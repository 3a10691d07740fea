#pragma once

#include <memory>

#include "port/boot.h"

namespace brant::port {

/// True if this process holds the socket that `brant run` gave it. A child of such a process inherits the environment
/// but not the socket, so the variable alone proves nothing.
bool launcher_present() noexcept;

/// Bootstrap through the `brant run` that started this process. May be opened again after finalize(), one at a time.
/// Throws Error: not_found without the launcher's socket, version_mismatch, peer_rejected, invalid_argument for broken
/// BRANT_* variables, limit_reached if another one is open.
std::unique_ptr<Boot> open_launcher_boot();

}  // namespace brant::port
