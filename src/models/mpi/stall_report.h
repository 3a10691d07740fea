#pragma once

#include "core/engine.h"

namespace brant::mpi {

/// Says what a rank waits for where nothing happens for long.
class StallReport final : public Service {
 public:
  explicit StallReport(Engine&) noexcept {}
  bool stalled(std::chrono::nanoseconds idle, bool for_ever) noexcept override;
};

}  // namespace brant::mpi
