#pragma once

#include <string>

namespace brant::cli::info {

/// The version and what it was built from: "0.1.0+gefe4343", with ".dirty" after changes that were not committed.
/// Without git "0.1.0".
std::string build_version();

}  // namespace brant::cli::info
