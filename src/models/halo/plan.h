#pragma once

#include <vector>

#include "models/halo/decomposition.h"

namespace brant::halo {

/// Cells that travel together: where they are in the array of their owner, and where they go in the other's.
struct Region {
  Box from;
  Box to;
};

/// All regions that go from one block to another, which travel as one message. Both ends list them in the same order.
struct Message {
  int from = 0;
  int to = 0;
  std::vector<Region> regions;

  [[nodiscard]] std::int64_t cells() const noexcept;
};

/// What one block exchanges. Partners come in ascending order from the block itself on, then from the lowest, so that
/// not all blocks begin with the same one.
struct BlockPlan {
  std::vector<Message> sends;
  std::vector<Message> receives;
};

BlockPlan plan_block(const Decomposition& cut, int block);

}  // namespace brant::halo
