#pragma once

#include "core/engine.h"
#include "ops/mover/copy_kernels.h"
#include "ops/mover/copy_lane.h"
#include "ops/mover/move.h"

namespace brant {

/// Copies by a device whose bytes do not lie in one run at both ends: packs, unpacks, or goes from one shape into
/// another. Both ends are memory that its kernels reach: device memory, mapped or its own, and pinned memory. Strided
/// ends take one kernel; lists of runs go by many of them in one launch; without kernels run by run.
///
/// One stream of its own: such copies are done in the order in which they were asked for. The mover's.
class ShapedCopier final : private Poller {
 public:
  ShapedCopier(Engine& engine, CopyKernels& kernels, CopyEnd done) noexcept;
  ~ShapedCopier() { engine_.pollers().detach(*this); }
  ShapedCopier(const ShapedCopier&) = delete;
  ShapedCopier& operator=(const ShapedCopier&) = delete;

  /// So many of the next `most` bytes it takes in one call, since each run is an order of its own.
  [[nodiscard]] std::size_t step_bytes(const StepEnd& to, const StepEnd& from, std::size_t most) const noexcept;
  /// Starts a copy of what `step_bytes` said, or less; `done` runs from a later progress. Never waits.
  Status start(const StepEnd& to, const StepEnd& from, std::size_t bytes, DeviceCopy& copy) noexcept;

 private:
  unsigned poll() noexcept override;
  [[nodiscard]] bool goes_run_by_run(const StepEnd& end) const noexcept;
  Status issue(const StepEnd& to, const StepEnd& from, std::size_t bytes, port::Stream* stream) noexcept;
  Status issue_strided(const StepEnd& to, const StepEnd& from, std::size_t bytes, port::Stream* stream) noexcept;
  Status issue_runs(const StepEnd& to, const StepEnd& from, std::size_t bytes, port::Stream* stream) noexcept;
  static void ended(void* self, DeviceCopy& copy, Status status) noexcept;

  Engine& engine_;
  const CopyEnd done_;
  CopyKernels& kernels_;
  EventPool events_;
  CopyLane lane_;
};

}  // namespace brant
