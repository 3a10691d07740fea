#pragma once

#include <cstdint>

#include "brant/base/api.h"
#include "brant/base/buffer.h"

/// What models tell each other of data that travels beside their messages. A seam between brant's storeys: programs
/// use what stands on it (include/brant/chare/device.h).
namespace brant::lane {

/// One argument, as its receiver must know it before it comes.
struct DataMeta {
  std::uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::host;
  bool host_only = false;  ///< It must land where the CPU reads.
  std::uint8_t unused[6] = {};
};

struct DataOrigin;    // a source, until nobody needs it any more
struct LandingBlock;  // memory of the runtime that data landed in; counted
/// One owner less.
BRANT_API void drop_landing(LandingBlock* block) noexcept;

}  // namespace brant::lane
