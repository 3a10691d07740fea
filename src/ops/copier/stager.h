#pragma once

#include "core/engine.h"
#include "ops/copier/copy_lane.h"
#include "ops/copier/stage_pool.h"

namespace brant {

/// The two copy directions of the staged path: one stream each, so that a copy out never waits behind a copy in. Each
/// layer has its own: its last copies lie in the layer's records, and the records hold its buffers.
class Stager final : private Poller {
 public:
  explicit Stager(Engine& engine) noexcept
      : engine_(engine),
        buffers_(engine),
        events_(engine.device()),
        out_(engine.device(), events_),
        in_(engine.device(), events_) {}
  ~Stager() { engine_.detach(static_cast<Poller&>(*this)); }

  enum class Direction { out, in };

  [[nodiscard]] StagePool& buffers() noexcept { return buffers_; }

  /// Starts a copy; `copy.done` runs from a later progress. Never waits.
  Status start(Direction direction, void* destination, const void* source, std::size_t bytes, StageCopy& copy) noexcept;

 private:
  unsigned poll() noexcept override;

  Engine& engine_;
  StagePool buffers_;
  EventPool events_;
  CopyLane out_;
  CopyLane in_;
};

}  // namespace brant
