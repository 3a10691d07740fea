#pragma once

#include <vector>

#include "core/engine.h"
#include "ops/channel/stage_pool.h"

namespace brant {

/// A copy between device and stage buffer that somebody waits for.
struct StageCopy {
  ListHook<StageCopy> hook;
  port::Event* event = nullptr;
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
  void (*done)(StageCopy& self, Status status) noexcept = nullptr;
};

/// The two copy directions of the staged path: one stream each, so that a copy out never waits behind a copy in.
class Stager final : private Poller {
 public:
  explicit Stager(Engine& engine) noexcept : engine_(engine), buffers_(engine.device()) {}
  ~Stager();

  enum class Direction { out, in };

  [[nodiscard]] StagePool& buffers() noexcept { return buffers_; }

  /// Starts a copy; `copy.done` runs from a later progress. Never waits.
  Status start(Direction direction, void* destination, const void* source, std::size_t bytes, StageCopy& copy) noexcept;

 private:
  struct Lane {
    port::Stream* stream = nullptr;
    IntrusiveList<StageCopy, &StageCopy::hook> copies;
  };

  unsigned poll() noexcept override;
  unsigned poll_lane(Lane& lane) noexcept;
  Result<port::Event*> take_event() noexcept;

  Engine& engine_;
  StagePool buffers_;
  Lane lanes_[2];
  unsigned under_way_ = 0;
  std::vector<port::Event*> events_;
};

}  // namespace brant
