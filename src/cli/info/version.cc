#include "cli/info/version.h"

namespace brant::cli::info {

std::string build_version() {
  const std::string revision = BRANT_REVISION;
  return revision.empty() ? BRANT_VERSION : BRANT_VERSION "+" + revision;
}

}  // namespace brant::cli::info
