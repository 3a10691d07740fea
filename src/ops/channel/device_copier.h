#pragma once

#include <array>

#include "core/engine.h"
#include "ops/channel/copy_lane.h"

namespace brant {

/// Copies between device memory of this process and what it has mapped of its peers. What was asked for since the last
/// progress goes together: a single copy and large ones by the copy engine, several small ones by one kernel, since
/// every call of the driver costs some microseconds. Copies may overtake one another.
class DeviceCopier final : private Poller {
 public:
  explicit DeviceCopier(Engine& engine) noexcept;
  ~DeviceCopier() { engine_.detach(static_cast<Poller&>(*this)); }
  DeviceCopier(const DeviceCopier&) = delete;
  DeviceCopier& operator=(const DeviceCopier&) = delete;

  /// Begins in the next progress; `copy.done` runs from a later one, with the outcome. Never waits.
  void start(void* to, const void* from, std::size_t bytes, StageCopy& copy) noexcept;

 private:
  static constexpr unsigned kLanes = 4;  ///< Streams, which the copy engines work on side by side.

  unsigned poll() noexcept override;
  void issue() noexcept;
  void issue_alone(StageCopy& copy) noexcept;
  void issue_together(StageCopies& batch) noexcept;
  CopyLane& next_lane() noexcept { return lanes_[next_lane_++ % kLanes]; }
  /// Hands the copies to the lane, or ends them if `issued` or the lane failed.
  static void close(CopyLane& lane, StageCopies& batch, Status issued) noexcept;
  [[nodiscard]] bool idle() const noexcept;

  Engine& engine_;
  port::Kernel* kernel_ = nullptr;  ///< Null where there is none: then every copy goes alone.
  EventPool events_;
  std::array<CopyLane, kLanes> lanes_;
  unsigned next_lane_ = 0;
  StageCopies asked_;
};

}  // namespace brant
