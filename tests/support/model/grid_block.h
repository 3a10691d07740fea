#pragma once

#include <cstdint>

#include "support/model/stepped_thread.h"

namespace brant::test::model {

/// A thread of the model checker that is a block of a grid.
class GridBlock : public SteppedThread {
 public:
  GridBlock(Scheduler& scheduler, std::uint64_t& clock_ns, unsigned block, unsigned blocks)
      : SteppedThread(scheduler, clock_ns), block_(block), blocks_(blocks) {}

  // NOLINTBEGIN(bugprone-derived-method-shadowing-base-method)
  [[nodiscard]] unsigned block() const { return block_; }
  [[nodiscard]] unsigned blocks() const { return blocks_; }
  // NOLINTEND(bugprone-derived-method-shadowing-base-method)

 private:
  const unsigned block_;
  const unsigned blocks_;
};

}  // namespace brant::test::model
