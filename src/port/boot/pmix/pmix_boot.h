#pragma once

#include <memory>

#include "port/boot.h"

namespace brant::port {

/// Bootstrap through PMIx; the library is loaded here, brant is never linked to it. Throws Error: not_found if there is
/// no libpmix (the text says where it was looked for), peer_rejected if no server answers within 20 s or
/// BRANT_BOOT_TIMEOUT_MS, whichever is shorter. A fence fetches what all processes put for it and keeps it until the
/// process ends: one look-up in this host's server per process and value, under PRRTE one request to another host's.
std::unique_ptr<Boot> open_pmix_boot();

}  // namespace brant::port
