#pragma once

#include <string>
#include <vector>

#include "bench/runner/space.h"
#include "brant/brant.h"

namespace brant::bench {

/// One memory of this process.
struct OwnMemory {
  MemoryKind kind = MemoryKind::host;
  Space space;
  Space other;  ///< For copies inside it. Empty where nothing is copied inside it.
};

/// The memories of this process, and which it does not have.
struct OwnMemories {
  std::vector<OwnMemory> all;
  std::vector<std::string> missing;  ///< In words, with the reason.
};

/// Host memory made by `host`, pinned memory, and the device's, of `bytes` each; twice for copies inside it. Throws
/// Error no_memory.
OwnMemories make_memories(Runtime& runtime, std::size_t bytes, Alloc host, bool twice);

}  // namespace brant::bench
