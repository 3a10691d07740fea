#pragma once

#include <cstdint>
#include <vector>

#include "brant/coll/collectives.h"
#include "ops/coll/device/staging.h"
#include "ops/coll/plan.h"
#include "ops/coll/work.h"

namespace brant {
class TeamState;
}

namespace brant::coll {

/// A call that was looked at and planned once, with lists of its own.
struct Prepared {
  explicit Prepared(const Collective& given)
      : call(given),
        block_bytes(given.block_bytes.begin(), given.block_bytes.end()),
        in_block_bytes(given.in_block_bytes.begin(), given.in_block_bytes.end()),
        sources(given.neighbours.sources.begin(), given.neighbours.sources.end()),
        destinations(given.neighbours.destinations.begin(), given.neighbours.destinations.end()) {
    call.block_bytes = block_bytes;
    call.in_block_bytes = in_block_bytes;
    call.neighbours = {sources, destinations};
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  Collective call;
  std::vector<std::uint64_t> block_bytes, in_block_bytes;
  std::vector<std::int32_t> sources, destinations;
  const TeamState* team = nullptr;  ///< For which it was planned.
  Work work;
  Plan plan;
  Sides sides;
};

}  // namespace brant::coll
