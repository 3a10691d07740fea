#pragma once

#include <cstddef>

#include "brant/base/status.h"
#include "brant/core/path.h"

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
};

struct PathChoice {
  Path path = Path::automatic;
  Status status = Status::ok;  ///< not_supported when the forced path cannot serve the query.
  const char* reason = "";     ///< For people: why this path, or why not.
};

/// Copying through shared memory beats a network library that lets the kernel copy (CMA) for messages that are small
/// (no system call) or large (two processes copy, page by page in cache); between the two the single copy wins on most
/// machines. Measured in docs/numbers; see docs/decisions/0005.
inline constexpr std::size_t kShmSmallBytes = std::size_t{8} << 10;
inline constexpr std::size_t kShmLargeBytes = std::size_t{4} << 20;

constexpr bool shm_is_faster(std::size_t bytes) noexcept { return bytes <= kShmSmallBytes || bytes >= kShmLargeBytes; }

/// The path of one transfer. A pure function: the same query gives the same answer.
PathChoice choose_path(const PathQuery& query) noexcept;

}  // namespace brant
