#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "brant/base/buffer.h"
#include "brant/base/ids.h"
#include "core/failure_detector.h"
#include "core/host_links.h"
#include "core/joined_slots.h"
#include "core/leases.h"
#include "core/observe/counters.h"
#include "core/peer.h"
#include "port/boot.h"
#include "port/wire.h"

namespace brant {

/// The other processes: who they are, how they are connected, and how one is given up. Those of the job by rank, and
/// those that have joined (`joined_peers.h`), which have no part in what the job does together.
class Peers {
 public:
  /// Told of each peer that this process has connected to.
  using Connected = void (*)(void* context, Peer& peer) noexcept;
  /// Told of each joined peer that is about to be disconnected: one that is lost, or has left.
  using Parting = void (*)(void* context, Peer& peer) noexcept;

  Peers(const port::JobInfo& job, port::Wire& wire, HostLinks& links, Leases& leases, Counters& counters);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// Takes what all processes told of themselves, by rank, and attaches to the memory of those of this host.
  void meet(std::vector<PeerRecord> records);
  void on_connected(Connected connected, void* context) noexcept {
    connected_ = connected;
    connected_context_ = context;
  }
  void on_parting(Parting parting, void* context) noexcept {
    parting_ = parting;
    parting_context_ = context;
  }

  // Those of the job.
  [[nodiscard]] auto begin() noexcept { return peers_.begin(); }
  [[nodiscard]] auto end() noexcept { return peers_.end(); }
  [[nodiscard]] auto begin() const noexcept { return peers_.begin(); }
  [[nodiscard]] auto end() const noexcept { return peers_.end(); }

  /// Of a rank that the job has. Does not connect.
  [[nodiscard]] Peer& operator[](int rank) noexcept { return peers_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Peer& operator[](int rank) const noexcept { return peers_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] JoinedSlots& joined() noexcept { return joined_; }
  /// The record of this process.
  [[nodiscard]] const PeerRecord& mine() const noexcept { return (*this)[job_.rank].record; }
  /// The peer that a message says it is from. Null for a rank that the job does not have, and of one that has left.
  /// Does not connect.
  [[nodiscard]] Peer* find(std::int32_t rank) noexcept {
    const auto place = static_cast<std::size_t>(rank);
    return rank >= 0 && place < peers_.size() ? &peers_[place] : joined_.find(rank);
  }
  /// The peer that a link record came from. Does not connect.
  Peer& linked(int rank) noexcept {
    Peer& peer = (*this)[rank];
    if (peer.link == nullptr) peer.link = links_.link(rank);
    return peer;
  }
  /// Connects on first use. Throws invalid_argument for a rank outside the job, peer_lost if the process is gone, or
  /// was joined and has left.
  Peer& connect(Rank rank);

  /// In another process: one can wait for it. Tests run several ranks in one thread.
  [[nodiscard]] bool runs_elsewhere(const Peer& peer) const noexcept;
  /// Its end can be seen through this host's kernel, if it is another process.
  [[nodiscard]] bool watched_by_kernel(const Peer& peer) const noexcept;
  /// Its end is noticed from now on. False: it has come already.
  [[nodiscard]] bool watch(const Peer& peer);
  /// Kind of device memory that this process and a peer can map of each other; detect: none.
  [[nodiscard]] MemoryKind mutual_kind(const Peer& peer) const noexcept;

  /// Runs the handler of what has come over links for a service, also before it was claimed. Not within progress.
  void look_at_links(unsigned service) noexcept;

  /// The network failed towards this peer: it is given up in the next progress, as if its process had died.
  void suspect(Peer& peer) noexcept {
    peer.suspected = true;
    suspects_ = true;
  }
  /// A peer wrote `what`, which no process of this job writes: that is counted, said once for each peer, and the peer
  /// is given up in the next progress (docs/decisions/0021). What the record was about is not done.
  void distrust(Peer& peer, const char* what) noexcept;
  /// The same of a message that names its sender by itself: one that the job does not have is not given up.
  void distrust(std::int32_t rank, const char* what) noexcept;
  [[nodiscard]] bool any_suspected() const noexcept { return suspects_; }
  [[nodiscard]] bool any_lost() const noexcept;

  /// Gives up those that are suspected, and those whose end was seen since the last call.
  void check() noexcept;
  /// Gives one up at once: what it had sent arrives, and every operation with it ends as peer_lost.
  void lose(Peer& peer) noexcept;
  /// Readable while the end of a process of this host is to be seen.
  [[nodiscard]] int event_fd() const noexcept { return detector_.event_fd(); }

  /// This process ends: what still comes of them is not answered.
  void disconnect() noexcept;
  /// Takes every record out of the lists, and tells none.
  void forget_outstanding() noexcept;

 private:
  static void on_endpoint_failed(void* peers, port::WireEndpoint* endpoint) noexcept;
  static void on_link_fault(void* peers, int rank) noexcept;
  template <typename Visit>
  void for_each(Visit&& visit);
  void attach_links() noexcept;
  void hear_verdicts() noexcept;
  [[nodiscard]] std::string ended_before(const Peer& peer) const;
  [[nodiscard]] std::string why_not_connected(const Peer& peer, Status status, bool dying) const;

  const port::JobInfo& job_;
  port::Wire& wire_;
  HostLinks& links_;
  Leases& leases_;
  Counters& counters_;
  std::deque<Peer> peers_;  // a deque: records stay in place
  JoinedSlots joined_;
  FailureDetector detector_;
  Connected connected_ = nullptr;
  void* connected_context_ = nullptr;
  Parting parting_ = nullptr;
  void* parting_context_ = nullptr;
  bool suspects_ = false;
  bool nameless_told_ = false;  ///< Of bad records from ranks that the job does not have.
};

}  // namespace brant
