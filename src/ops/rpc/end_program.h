#pragma once

#include <string>

#include "brant/base/status.h"

namespace brant::remote {

/// Ends the process as an uncaught Error does: for what nobody waits for.
[[noreturn]] void end_program(Status status, const std::string& text) noexcept;

}  // namespace brant::remote
