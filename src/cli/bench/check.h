#pragma once

#include <cstddef>

#include "cli/bench/options.h"
#include "cli/bench/session.h"

namespace brant::cli::bench {

/// Sends messages as the benchmark does and looks at every byte of every one: each message has a pattern of its own,
/// and each landing is poisoned first. Not timed. `times` round trips, or windows. Collective. Throws Error naming the
/// message and the first wrong byte.
void check_transfers(Session& session, const Options& options, std::size_t bytes, std::size_t times);

}  // namespace brant::cli::bench
