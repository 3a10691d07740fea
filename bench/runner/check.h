#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "bench/runner/options.h"
#include "bench/runner/session.h"

namespace brant::bench {

/// How the messages go: posts that may fire the moments of the record, as those of `Channel`.
struct CheckedPosts {
  std::function<Status(ConstBuffer source, Op& op)> send;
  std::function<Status(Buffer landing, Op& op)> recv;
};

/// Messages of a window that are looked at: each has a place of its own.
std::size_t places_for(const Options& options, std::size_t bytes) noexcept;
/// What the largest window of all sizes takes: memory that is freed between sizes would have to be mapped anew.
std::size_t scratch_bytes(const Options& options) noexcept;

struct WrongByte {
  std::uint64_t message = 0;
  std::size_t index = 0;
  std::byte found{};
};
/// What is thrown for it.
Error wrong_byte(const WrongByte& wrong, std::size_t bytes, MemoryKind kind, int rank);

/// Sends messages as the benchmark does and looks at every byte of every one: each message has a pattern of its own,
/// and each landing is poisoned first. Not timed. `times` round trips, or windows. Collective. Throws Error naming the
/// message and the first wrong byte.
void check_transfers(Session& session, const Options& options, std::size_t bytes, std::size_t times,
                     const CheckedPosts& posts);

}  // namespace brant::bench
