#include "core/silence.h"

#include <cstddef>
#include <utility>

#include "base/log.h"
#include "base/process_stat.h"

namespace brant {

void Silence::report(bool for_ever) noexcept {
  const auto idle = clock_.recently() - since_;
  if (patience_ <= std::chrono::nanoseconds::zero() || idle < patience_) return;
  if (std::exchange(reported_, since_) == since_) return;
  if (!services_.stalled(idle, for_ever)) return;
  patience_ = 2 * idle;
  report_stopped();
}

/// Processes of this host that can do nothing: a signal or a debugger holds them.
void Silence::report_stopped() const noexcept {
  constexpr std::size_t kNamedMax = 8;
  std::size_t stopped = 0;
  for (const Peer& peer : peers_) {
    if (peer.lost || !peers_.runs_elsewhere(peer) || !peers_.watched_by_kernel(peer)) continue;
    const Result<ProcessStat> stat = read_process_stat(peer.record.pid);
    if (!stat || !stat->stopped() || ++stopped > kNamedMax) continue;
    log::warn("rank {} (pid {}) is stopped, by a signal or a debugger: `kill -CONT {}` lets it go on", peer.rank.value,
              peer.record.pid, peer.record.pid);
  }
  if (stopped > kNamedMax) log::warn("{} more ranks of this host are stopped", stopped - kNamedMax);
}

}  // namespace brant
