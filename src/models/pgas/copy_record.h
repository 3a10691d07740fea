#pragma once

#include <cstddef>
#include <cstdint>

#include "brant/base/atomic.h"
#include "brant/base/intrusive_list.h"
#include "brant/pgas/copy_options.h"
#include "core/completions.h"

namespace brant {

class SpaceState;
struct KnownSegment;

/// A copy of the global space that takes more than one post: its segment is not reached yet, the target is told, its
/// bytes are kept, or somebody else makes it. Lent from post to completion.
struct CopyRecord final : OpOwner {
  enum class Task : std::uint8_t { put, get, copy, atomic, reach, fence };

  explicit CopyRecord(SpaceState& space_in) noexcept : space(space_in) {}

  SpaceState& space;
  ListHook<CopyRecord> hook;  ///< In the list of a segment that is not reached yet, of fences, or of those refused.
  ListHook<CopyRecord> post_hook;  ///< In the list of all, in the order of their posts.
  KnownSegment* waits_for = nullptr;
  KnownSegment* other_end = nullptr;  ///< Counts this copy, beside the segment that it is posted to.
  KnownSegment* flags = nullptr;      ///< Likewise, where the device that copies sets the flag.
  Op inner;                           ///< Of what this process moves, or of a call that waits for progress.
  Task task = Task::put;
  bool posting = true;      ///< Inside the post: an outcome is returned and not reported.
  bool fencing = false;     ///< The bytes are visible; the target is told behind all that was posted before.
  bool telling = false;     ///< The bytes are visible; a word behind them is on its way.
  bool refused = false;     ///< It waits for room.
  bool told = false;        ///< The device that copied has set the flag.
  bool tells_free = false;  ///< The user asked when the source is free.
  std::uint8_t kept = 0;    ///< So many bytes of `value` are what is copied.
  Path path = Path::automatic;
  Status outcome = Status::in_progress;
  GlobalPtr<std::byte> there;
  GlobalPtr<const std::byte> source;  ///< Of a `copy`.
  Buffer local;
  std::size_t bytes = 0;  ///< Of a `copy`.
  std::uint64_t moved_bytes = 0;
  const TransferShapes* shapes = nullptr;
  Atomic atomic;
  AtTarget at_target;
  std::uint64_t id = 0;           ///< While another process copies.
  std::byte* value_to = nullptr;  ///< Of a get or an atomic: where the value goes in the end.
  alignas(16) std::byte value[16] = {};

  /// It ends when the target was told.
  [[nodiscard]] bool has_moved() const noexcept { return fencing || telling; }
};

}  // namespace brant
