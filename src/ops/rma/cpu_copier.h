#pragma once

#include "core/engine.h"
#include "ops/rma/transfer.h"

namespace brant {

/// Copies by the CPU between memory of this process and what it has mapped: up to kTurnBytes at once, larger ones in
/// turns of progress, so that no call copies more than that.
class CpuCopier final : private Poller {
 public:
  /// Some 20 us. Less would keep processors with much memory bandwidth from it; more would keep completions waiting.
  static constexpr std::size_t kTurnBytes = std::size_t{256} << 10;

  using Done = void (*)(RmaTransfer& transfer, Status status) noexcept;
  /// `done` is told of those that took more than their first turn.
  CpuCopier(Engine& engine, Done done) noexcept : engine_(engine), done_(done) {}
  CpuCopier(const CpuCopier&) = delete;
  CpuCopier& operator=(const CpuCopier&) = delete;
  ~CpuCopier() { engine_.detach(static_cast<Poller&>(*this)); }

  /// Copies all of it, now.
  static void copy(void* to, const void* from, std::size_t bytes) noexcept;
  /// Copies what `transfer.cpu` says. ok: all of it; in_progress: the rest follows.
  Status start(RmaTransfer& transfer) noexcept;
  /// True: it was being copied, and no more of it will be.
  bool withdraw(RmaTransfer& transfer) noexcept;

 private:
  unsigned poll() noexcept override;

  Engine& engine_;
  const Done done_;
  IntrusiveList<RmaTransfer, &RmaTransfer::cpu_hook> copying_;  ///< They take turns.
};

}  // namespace brant
