#pragma once

#include <vector>

#include "core/engine.h"
#include "ops/channel/stage_pool.h"

namespace brant {

/// A copy between device and stage buffer that somebody waits for.
struct StageCopy {
  ListHook<StageCopy> hook;
  port::Event* event = nullptr;
  void (*done)(StageCopy& self, Status status) noexcept = nullptr;
};

/// Copies by the device that nobody waits for. Out and in have a stream each, so that neither waits behind the other;
/// copies into the memory of peers have several, which work side by side.
class Stager final : private Poller {
 public:
  explicit Stager(Engine& engine) noexcept : engine_(engine), buffers_(engine.device()) {}
  ~Stager();

  enum class Direction : std::uint8_t { out, in, peer };

  [[nodiscard]] StagePool& buffers() noexcept { return buffers_; }

  /// Starts a copy; `copy.done` runs from a later progress. Never waits. Copies of direction `peer` may overtake one
  /// another.
  Status start(Direction direction, void* destination, const void* source, std::size_t bytes, StageCopy& copy) noexcept;

 private:
  struct Lane {
    port::Stream* stream = nullptr;
    IntrusiveList<StageCopy, &StageCopy::hook> copies;
  };

  unsigned poll() noexcept override;
  unsigned poll_lane(Lane& lane) noexcept;
  Lane& lane_for(Direction direction) noexcept;
  Result<port::Event*> take_event() noexcept;

  Engine& engine_;
  StagePool buffers_;
  static constexpr unsigned kPeerLanes = 4;

  Lane lanes_[2 + kPeerLanes];
  unsigned next_peer_lane_ = 0;
  unsigned under_way_ = 0;
  std::vector<port::Event*> events_;
};

}  // namespace brant
