#pragma once

#include "core/engine.h"
#include "ops/mover/copy_lane.h"

namespace brant {

/// The two copy directions of the staged path: one stream each, so that a copy out never waits behind a copy in.
class Stager final : private Poller {
 public:
  Stager(Engine& engine, CopyEnd done) noexcept
      : engine_(engine),
        events_(engine.device()),
        out_(engine.device(), events_, done),
        in_(engine.device(), events_, done) {}
  ~Stager() { engine_.pollers().detach(*this); }

  enum class Direction { out, in };

  /// Starts a copy; `done` runs from a later progress. Never waits.
  Status start(Direction direction, void* destination, const void* source, std::size_t bytes,
               DeviceCopy& copy) noexcept;

 private:
  unsigned poll() noexcept override;

  Engine& engine_;
  EventPool events_;
  CopyLane out_;
  CopyLane in_;
};

}  // namespace brant
