#pragma once

#include <optional>

#include "brant/brant.h"

/// What programs here do about devices. Without CLI11, which each file that includes it pays for.
namespace apps {

/// From the environment, with the device that memory of this kind is on; of nothing, as the environment has it.
brant::RuntimeOptions runtime_options_for(std::optional<brant::MemoryKind> kind);

/// Throws where the device failed to do `what`.
void require_device(brant::Status status, const char* what);

}  // namespace apps
