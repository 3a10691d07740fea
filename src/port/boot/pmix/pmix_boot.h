#pragma once

#include <memory>

#include "port/boot.h"

namespace brant::port {

/// Bootstrap through PMIx; the library is loaded here, brant is never linked to it. Throws Error: not_found if there is
/// no libpmix (the text says where it was looked for), peer_rejected if no server answers.
std::unique_ptr<Boot> open_pmix_boot();

}  // namespace brant::port
