#include "cli/info/version.h"

namespace brant::cli::info {

std::string build_version() { return BRANT_BUILD_VERSION; }

}  // namespace brant::cli::info
