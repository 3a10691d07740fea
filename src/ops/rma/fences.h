#pragma once

#include "base/object_pool.h"
#include "brant/base/intrusive_list.h"
#include "core/engine.h"
#include "ops/mover/mover.h"

namespace brant {

/// Learns when all puts and atomics that were posted to a process before are visible there: atomics, and the puts that
/// CPUs and devices copy, by their places in the list of what is under way with it; then the puts that the network has
/// taken, by a flush.
class RmaFences final : private Poller {
 public:
  static constexpr std::size_t kFencesMax = 4096;

  RmaFences(Engine& engine, Mover& mover) noexcept : engine_(engine), mover_(mover) {}
  ~RmaFences() { engine_.pollers().detach(*this); }
  RmaFences(const RmaFences&) = delete;
  RmaFences& operator=(const RmaFences&) = delete;

  /// See `brant::post_fence`.
  Status post(Rank rank, Op& op) noexcept;

 private:
  struct Fence final : OpOwner, PeerOp, Move {
    Fence(RmaFences& fences_in, Peer& peer_in) noexcept : Move(kEvents), fences(fences_in), peer_way{peer_in} {
      way = &peer_way;
    }
    RmaFences& fences;
    RemoteWay peer_way;
    bool is_flushing = false;
  };
  static const MoveEvents kEvents;

  [[nodiscard]] static bool writes_come_before(const Fence& fence) noexcept;
  Status flush(Fence& fence) noexcept;
  void end(Fence& fence, Status status) noexcept;
  static void on_lost(PeerOp& op) noexcept;
  unsigned poll() noexcept override;

  Engine& engine_;
  Mover& mover_;
  ObjectPool<Fence> records_{kFencesMax};
  IntrusiveList<Move, &Move::hook> waiting_;  ///< For earlier puts and atomics.
};

}  // namespace brant
