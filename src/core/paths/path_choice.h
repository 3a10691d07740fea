#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "brant/base/status.h"
#include "brant/core/path.h"
#include "core/paths/path_order.h"

namespace brant {

/// Who the two ends are to each other.
enum class Locality : std::uint8_t { same_process, same_host, other_host };

/// Everything the choice depends on.
struct PathQuery {
  MemoryKind kind = MemoryKind::host;  ///< Of this end's buffer, resolved.
  std::size_t bytes = 0;
  Locality locality = Locality::same_host;
  bool wire_takes_kind = true;    ///< The network moves this kind directly.
  bool shm_open = false;          ///< Both ends have agreed on a shared-memory link.
  bool peer_maps = false;         ///< Each end can map the other's device memory (and they have a link).
  std::size_t courier_bytes = 0;  ///< The sender's device has a courier for messages up to here.
  Path forced = Path::automatic;
  /// Of the other end's buffer. A channel cannot know it before the other end answers: detect, taken as the same kind.
  MemoryKind other_kind = MemoryKind::detect;
  /// A message whose host memory the other end can map: of Runtime::allocate with 16 KB or more.
  bool mapped_source = false;
  /// A put or a get, or a message within one process: one end moves the bytes, in memory of the other end that it
  /// reaches (shm_open: the host's, peer_maps: a device's), and knows both kinds. `kind` is where the bytes are.
  bool one_sided = false;
  /// Then, between host and device memory: the device reaches the host memory, which is pinned and of this process, or
  /// a peer's whose mapping is registered with it.
  bool pinned_here = false;
  /// Of a message to host memory: the other end's, which this end's device reaches through its mapping.
  bool mapped_landing = false;

  bool operator==(const PathQuery&) const = default;
};

struct PathChoice {
  Path path = Path::automatic;
  Status status = Status::ok;  ///< not_supported when the forced path cannot serve the query.
  const char* reason = "";     ///< For people: why this path, or why not.
};

/// The path of one transfer: the forced one, or the first of `order` that can serve; between host memories, where
/// nothing is staged, `staged` forces nothing. A pure function: the same query gives the same answer. The order holds
/// for two processes of one host; others get the defaults, and puts and gets with host memory an order of their own.
PathChoice choose_path(const PathQuery& query, const PathOrder& order = PathOrder::defaults()) noexcept;

/// What is to say about one path for one transfer.
struct PathVerdict {
  Path path = Path::automatic;
  const char* refusal = nullptr;  ///< Why it cannot serve; null if it can.
  std::optional<double> us;       ///< Predicted, one way. Never for a path that is refused.
};

/// Microseconds of a message by a path, one way, between two processes of one host; nothing if nothing is known.
std::optional<double> predicted_us(Path path, const PathQuery& query, const Calibration& calibration);

/// All paths as `choose_path` would go through them: those that can serve in order, then the refused ones. The forced
/// path does not count.
std::vector<PathVerdict> judge_paths(const PathQuery& query, const PathOrder& order, const Calibration& calibration);

}  // namespace brant
