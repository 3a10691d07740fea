#pragma once

#include <array>
#include <vector>

#include "core/engine.h"
#include "ops/channel/copy_orders.h"
#include "ops/channel/stager.h"

namespace brant {

/// Writes into the mapped device memory of peers. What was asked for since the last progress goes together: a single
/// copy and large ones by the copy engine, several small ones by one kernel, since every call of the driver costs some
/// microseconds. Copies may overtake one another.
class PeerCopier final : private Poller {
 public:
  explicit PeerCopier(Engine& engine) noexcept;
  ~PeerCopier();
  PeerCopier(const PeerCopier&) = delete;
  PeerCopier& operator=(const PeerCopier&) = delete;

  /// Begins in the next progress; `copy.done` runs from a later one, with the outcome. Never waits.
  void start(void* to, const void* from, std::size_t bytes, StageCopy& copy) noexcept;

 private:
  static constexpr unsigned kLanes = 4;  ///< Streams, which the copy engines work on side by side.
  using Copies = IntrusiveList<StageCopy, &StageCopy::hook>;
  struct Lane {
    port::Stream* stream = nullptr;
    Copies copies;  ///< In order; an event stands behind the last one of each batch.
  };

  unsigned poll() noexcept override;
  void issue() noexcept;
  void issue_together(const std::array<StageCopy*, CopyOrders::kMax>& batch, unsigned count) noexcept;
  void issue_alone(StageCopy& copy) noexcept;
  Lane* next_lane() noexcept;
  port::Event* take_event() noexcept;
  /// Puts an event behind what the lane got, and hands the copies to it; without one they end with `status`.
  void close_batch(Lane& lane, Copies& batch, Status status) noexcept;
  unsigned poll_lane(Lane& lane) noexcept;
  void end(StageCopy& copy, Status status) noexcept;

  Engine& engine_;
  port::Kernel* kernel_ = nullptr;  ///< Null where there is none: then every copy goes alone.
  std::array<Lane, kLanes> lanes_;
  unsigned next_lane_ = 0;
  Copies asked_;
  std::vector<port::Event*> events_;
  unsigned under_way_ = 0;
};

}  // namespace brant
