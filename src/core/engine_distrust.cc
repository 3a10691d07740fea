// What becomes of a peer that writes what no process of the job writes (docs/decisions/0021).
#include <utility>

#include "base/log.h"
#include "core/engine.h"
#include "core/joined_rank.h"

namespace brant {

void Engine::distrust(Peer& peer, const char* what) noexcept {
  counters_.bad_records.add();
  if (!std::exchange(peer.distrusted, true)) {
    log::error(
        "rank {} (pid {}) sent {}: it is given up, and what waits for it ends with peer_lost. Start all processes with "
        "one installation of brant; if they are, one of them writes where it must not",
        peer.rank.value, peer.record.pid, what);
  }
  if (!peer.same_process) suspect(peer);
}

void Engine::distrust(std::int32_t rank, const char* what) noexcept {
  if (Peer* peer = find_peer(rank)) return distrust(*peer, what);
  if (joined_rank::is_one(rank)) return;  // it has left, and this was still under way
  counters_.bad_records.add();
  if (std::exchange(nameless_told_, true)) return;
  log::error(
      "{} came from rank {}, which the job does not have: dropped, as all such are. Start all processes with one "
      "installation of brant",
      what, rank);
}

}  // namespace brant
