#pragma once

#include <cstddef>
#include <functional>

#include "bench/runner/options.h"
#include "bench/runner/session.h"

namespace brant::bench {

/// How the messages go: posts that may fire the moments of the record, as those of `Channel`.
struct CheckedPosts {
  std::function<Status(ConstBuffer source, Op& op)> send;
  std::function<Status(Buffer landing, Op& op)> recv;
};

/// Sends messages as the benchmark does and looks at every byte of every one: each message has a pattern of its own,
/// and each landing is poisoned first. Not timed. `times` round trips, or windows. Collective. Throws Error naming the
/// message and the first wrong byte.
void check_transfers(Session& session, const Options& options, std::size_t bytes, std::size_t times,
                     const CheckedPosts& posts);

}  // namespace brant::bench
