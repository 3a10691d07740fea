#pragma once

#include <utility>

#include "base/unique_fd.h"

namespace brant::run {

/// A terminal of our own for a rank whose output ends on a terminal: it may draw there (a progress bar), as it does
/// when nobody stands between. Our end, which does not block, and the rank's; nothing is echoed or changed on the way,
/// and it is as wide as the terminal `like`. Nothing where the system has no terminals left. Never the rank's
/// controlling terminal: Ctrl-C stays with `brant run`.
std::pair<UniqueFd, UniqueFd> open_terminal(int like) noexcept;

}  // namespace brant::run
