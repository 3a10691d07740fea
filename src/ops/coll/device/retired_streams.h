#pragma once

#include <memory>
#include <vector>

#include "core/engine.h"
#include "ops/coll/device/stream_team.h"

namespace brant::coll {

/// What teams that are closed had for their collectives on streams. Kernels may stand in a stream still, or in a graph
/// that was launched: so it is freed when the device has done all its work, and not within progress. What a fault ended
/// stays until the runtime goes: kernels of members that do not know of it yet may write there.
class RetiredStreams final : private DeferredWork {
 public:
  explicit RetiredStreams(Engine& engine) noexcept : engine_(engine) {}
  RetiredStreams(const RetiredStreams&) = delete;
  RetiredStreams& operator=(const RetiredStreams&) = delete;
  ~RetiredStreams();

  void take(std::unique_ptr<StreamTeam> streams, bool has_failed);

 private:
  void run_deferred() noexcept override;

  Engine& engine_;
  std::vector<std::unique_ptr<StreamTeam>> closed_;
  std::vector<std::unique_ptr<StreamTeam>> failed_;
};

}  // namespace brant::coll
