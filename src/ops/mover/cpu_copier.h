#pragma once

#include "core/engine.h"
#include "ops/mover/move.h"

namespace brant {

/// Copies by the CPU between memory of this process and what it has mapped: up to kTurnBytes at once, larger ones in
/// turns of progress, so that no call copies more than that.
class CpuCopier final : private Poller {
 public:
  /// Some 20 us. Less would keep processors with much memory bandwidth from it; more would keep completions waiting.
  static constexpr std::size_t kTurnBytes = std::size_t{256} << 10;
  static constexpr unsigned kPollTurns = 2;

  using Done = void (*)(void* context, Move& move, Status status) noexcept;
  /// `done` is told of those that took more than their first turn.
  CpuCopier(Engine& engine, Done done, void* context) noexcept : engine_(engine), done_(done), context_(context) {}
  CpuCopier(const CpuCopier&) = delete;
  CpuCopier& operator=(const CpuCopier&) = delete;
  ~CpuCopier() { engine_.pollers().detach(*this); }

  /// Copies all of it, now.
  static void copy(void* to, const void* from, std::size_t bytes) noexcept;
  static void copy(const StepEnd& to, const StepEnd& from, std::size_t bytes) noexcept;
  /// ok: all of it is copied; in_progress: the rest follows. `to` null: there is nothing to do but to count.
  Status start(Move& move, const Move::ByCpu& step) noexcept;
  /// True: it was being copied, and no more of it will be.
  bool withdraw(Move& move) noexcept;
  [[nodiscard]] static bool copies(const Move& move) noexcept { return std::holds_alternative<Move::ByCpu>(move.step); }

 private:
  unsigned poll() noexcept override;

  Engine& engine_;
  const Done done_;
  void* const context_;
  IntrusiveList<Move, &Move::hook> copying_;  ///< They take turns.
};

}  // namespace brant
