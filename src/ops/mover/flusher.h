#pragma once

#include "core/engine.h"
#include "ops/mover/move.h"

namespace brant {

/// Learns when puts over the network are visible at one peer. A flush covers every put before it, so one is under way
/// at a time, and what comes meanwhile shares the next one: a window of puts costs two or three.
class Flusher final : private Poller {
 public:
  using Done = void (*)(void* context, Move& move, Status status) noexcept;
  Flusher(Engine& engine, Peer& peer, Done done, void* context) noexcept
      : engine_(engine), peer_(peer), done_(done), context_(context) {
    op_.owner = this;
  }
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;
  ~Flusher() { engine_.pollers().detach(*this); }

  /// The put of `move` was posted. ok: it is visible; in_progress: `done` is told when it is, or why it never will
  /// be.
  Status flush(Move& move) noexcept;
  [[nodiscard]] bool busy() const noexcept { return under_way_ || !covered_.empty() || !waiting_.empty(); }

 private:
  using Moves = IntrusiveList<Move, &Move::hook>;
  struct FlushOp : port::WireOp {
    Flusher* owner = nullptr;
  };

  Status post() noexcept;
  void post_for_waiting() noexcept;
  void end(Moves& moves, Status status) noexcept;
  static void on_flushed(port::WireOp& op) noexcept;
  /// A flush that the network had no room for.
  unsigned poll() noexcept override;

  Engine& engine_;
  Peer& peer_;
  const Done done_;
  void* const context_;
  FlushOp op_;
  bool under_way_ = false;
  Moves covered_;  ///< By the flush that is under way.
  Moves waiting_;  ///< For the next one.
};

}  // namespace brant
