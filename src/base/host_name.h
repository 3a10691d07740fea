#pragma once

#include <string>

namespace brant {

/// What this machine calls itself; "unknown" if the kernel does not say.
std::string host_name();

}  // namespace brant
