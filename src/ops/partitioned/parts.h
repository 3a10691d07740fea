#pragma once

#include <cstdint>
#include <type_traits>

#include "brant/partitioned/partitioned.h"
#include "core/completions.h"

namespace brant {

/// What goes before each run of parts, in a message of its own.
struct PartHead {
  std::uint64_t epoch = 0;  ///< Of the message.
  std::uint64_t bytes = 0;  ///< Of all parts.
  std::uint32_t parts = 0;
  std::uint32_t first = 0;  ///< The run that follows,
  std::uint32_t count = 0;  ///< of so many parts. 0: none follows, nor any more of this message,
  Status given_up{};        ///< since it ended so.
};
static_assert(std::is_trivially_copyable_v<PartHead>);

/// The bytes of parts that lie beside each other.
inline PartRange run_range(std::size_t bytes, std::uint32_t parts, std::uint32_t first, std::uint32_t count) noexcept {
  const PartRange begin = part_range(bytes, parts, first);
  const PartRange last = part_range(bytes, parts, first + count - 1);
  return {begin.offset, last.offset + last.bytes - begin.offset};
}

/// Throws invalid_argument.
void check_partitioned(const Channel& channel, const PartitionedOptions& options);

/// The record of an operation of a user: refused while it is pending; an outcome that is known at once is not reported
/// again.
template <typename Post>
Status post_parts(Op& op, Post&& post) noexcept {
  if (op.pending()) [[unlikely]]
    return refuse_pending_op();
  op.result = {Status::ok, 0};
  const Status status = post();
  if (status != Status::in_progress) op.source_free = op.delivered = {};
  return status;
}

}  // namespace brant
