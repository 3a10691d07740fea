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
  bool wire_takes_kind = true;  ///< The network moves this kind directly.
  bool shm_open = false;        ///< Both ends have agreed on a shared-memory link.
  Path forced = Path::automatic;
};

struct PathChoice {
  Path path = Path::automatic;
  Status status = Status::ok;  ///< not_supported when the forced path cannot serve the query.
  const char* reason = "";     ///< For people: why this path, or why not.
};

/// The path of one transfer. A pure function: the same query gives the same answer.
PathChoice choose_path(const PathQuery& query) noexcept;

}  // namespace brant
