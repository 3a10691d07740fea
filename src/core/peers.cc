#include "core/peers.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/process_stat.h"
#include "core/batch_time.h"
#include "core/shared_memory_fault.h"

namespace brant {
namespace {

/// One that closes its network is about to end, as a rule. Waits for that, a little.
bool ends_soon(std::int32_t pid) noexcept {
  for (int look = 0; look < 50; ++look) {
    const Result<ProcessStat> stat = read_process_stat(pid);
    if (!stat || stat->exiting()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace

Peers::Peers(const port::JobInfo& job, port::Wire& wire, HostLinks& links, Leases& leases, Counters& counters)
    : job_(job), wire_(wire), links_(links), leases_(leases), counters_(counters) {
  wire_.set_failure_handler(&Peers::on_endpoint_failed, this);
  links_.set_fault_handler(&Peers::on_link_fault, this);
}

/// Of the job, and joined. `visit` may make the network move, and so bring new ones.
template <typename Visit>
void Peers::for_each(Visit&& visit) {
  std::ranges::for_each(peers_, visit);
  joined_.for_each(visit);
}

void Peers::meet(std::vector<PeerRecord> records) {
  const std::string own_host = records[static_cast<std::size_t>(job_.rank)].host_id;
  for (PeerRecord& record : records) {
    const auto rank = static_cast<std::int32_t>(peers_.size());
    Peer& peer = peers_.emplace_back();
    peer.rank = Rank{rank};
    peer.same_host = record.host_id == own_host;
    peer.same_process = rank == job_.rank;
    peer.rank_there = job_.rank;
    peer.rank_in_its_job = rank;
    peer.record = std::move(record);
  }
  attach_links();
}

void Peers::attach_links() noexcept {
  if (!links_.possible()) return;
  const auto here = [](const Peer& peer) { return peer.same_host && !peer.record.link_address.empty(); };
  const auto own_place = std::count_if(peers_.begin(), peers_.begin() + job_.rank, here);
  unsigned place = 0;
  for (const Peer& peer : peers_) {
    if (!here(peer)) continue;
    if (!peer.same_process)
      links_.attach(peer.rank.value, static_cast<unsigned>(own_place), place, peer.record.link_address);
    ++place;
  }
}

Peer& Peers::connect(Rank rank) {
  Peer* found = find(rank.value);
  if (found == nullptr && joined_rank::is_one(rank.value))
    throw Error(Status::peer_lost, fmt::format("the process that was joined as rank {} has left", rank.value));
  if (found == nullptr) {
    throw Error(Status::invalid_argument,
                fmt::format("there is no rank {}: the job has ranks 0 to {}", rank.value, job_.size - 1));
  }
  Peer& peer = *found;
  if (peer.lost)
    throw Error(Status::peer_lost, fmt::format("rank {} (pid {}) {}", rank.value, peer.record.pid,
                                               peer.joined && peer.ended ? "has left" : "is gone"));
  if (peer.endpoint != nullptr) return peer;
  if (!watch(peer)) {
    peer.lost = true;
    throw Error(Status::peer_lost, ended_before(peer));
  }
  Result<port::WireEndpoint*> endpoint = wire_.connect(peer.record.wire_address);
  if (!endpoint) {
    // A process that dies takes its memory along before its end can be seen.
    const bool dying = runs_elsewhere(peer) && watched_by_kernel(peer) && endpoint.status() == Status::io_error;
    if (dying) suspect(peer);
    throw Error(dying ? Status::peer_lost : endpoint.status(), why_not_connected(peer, endpoint.status(), dying));
  }
  peer.endpoint = *endpoint;
  if (!peer.same_process) peer.link = links_.link(rank.value);
  if (connected_ != nullptr) connected_(connected_context_, peer);
  return peer;
}

bool Peers::watch(const Peer& peer) {
  if (runs_elsewhere(peer) && watched_by_kernel(peer)) return detector_.watch(peer.rank.value, peer.record.pid);
  leases_.watch(peer.rank.value);  // which knows none but those of the job
  return true;
}

std::string Peers::ended_before(const Peer& peer) const {
  return fmt::format("rank {} (pid {}) ended before rank {} connected to it", peer.rank.value, peer.record.pid,
                     job_.rank);
}

std::string Peers::why_not_connected(const Peer& peer, Status status, bool dying) const {
  if (dying && ends_soon(peer.record.pid)) return ended_before(peer);
  return fmt::format("rank {} could not connect to rank {} (pid {}) over {}: {}{}", job_.rank, peer.rank.value,
                     peer.record.pid, wire_.capabilities().version, status_text(status),
                     peer.same_host ? shared_memory_fault(look_at_shared_memory()) : "");
}

bool Peers::watched_by_kernel(const Peer& peer) const noexcept {
  return peer.same_host && peer.record.pid_namespace == mine().pid_namespace;
}

bool Peers::runs_elsewhere(const Peer& peer) const noexcept {
  return !watched_by_kernel(peer) || peer.record.pid != mine().pid;
}

MemoryKind Peers::mutual_kind(const Peer& peer) const noexcept {
  const bool mappable = peer.link != nullptr && mine().mappable_kind == peer.record.mappable_kind;
  return mappable ? mine().mappable_kind : MemoryKind::detect;
}

void Peers::look_at_links(unsigned service) noexcept {
  for (const Peer& peer : peers_) {
    port::Link* link = peer.lost ? nullptr : links_.link(peer.rank.value);  // whether it is connected or not
    if (link != nullptr) static_cast<void>(link->poll(service));
  }
}

void Peers::distrust(Peer& peer, const char* what) noexcept {
  counters_.bad_records.add();
  if (!std::exchange(peer.distrusted, true)) {
    log::error(
        "rank {} (pid {}) sent {}: it is given up, and what waits for it ends with peer_lost. Start all processes with "
        "one installation of brant; if they are, one of them writes where it must not",
        peer.rank.value, peer.record.pid, what);
  }
  if (!peer.same_process) suspect(peer);
}

void Peers::distrust(std::int32_t rank, const char* what) noexcept {
  if (Peer* peer = find(rank)) return distrust(*peer, what);
  if (joined_rank::is_one(rank)) return;  // it has left, and this was still under way
  counters_.bad_records.add();
  if (std::exchange(nameless_told_, true)) return;
  log::error(
      "{} came from rank {}, which the job does not have: dropped, as all such are. Start all processes with one "
      "installation of brant",
      what, rank);
}

void Peers::on_endpoint_failed(void* peers, port::WireEndpoint* endpoint) noexcept {
  auto& self = *static_cast<Peers*>(peers);
  self.for_each([&](Peer& peer) {
    if (peer.endpoint == endpoint) self.suspect(peer);
  });
}

void Peers::on_link_fault(void* peers, int rank) noexcept {
  static_cast<Peers*>(peers)->distrust(rank, "a record over shared memory that is none");
}

bool Peers::any_lost() const noexcept {
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.lost; });
}

void Peers::check() noexcept {
  if (std::exchange(suspects_, false)) {
    for_each([this](Peer& peer) {
      if (peer.suspected) lose(peer);
    });
  }
  hear_verdicts();
  if (!detector_.watching()) return;
  for (const int rank : detector_.poll()) {
    if (Peer* peer = find(rank)) lose(*peer);
  }
}

/// Said aloud, unlike a death: it is a judgement, and its cause may be the network or a debugger.
void Peers::hear_verdicts() noexcept {
  for (const Lease::Verdict& verdict : leases_.poll()) {
    Peer& peer = (*this)[verdict.rank];
    if (!peer.lost && !peer.ended)
      log::warn("rank {} (pid {}, on another host) is given up: {}", verdict.rank, peer.record.pid,
                leases_.words_of(verdict.why));
    lose(peer);
  }
}

void Peers::lose(Peer& peer) noexcept {
  if (peer.lost) return;
  const auto take_in_what_has_come = [this] {
    for (int round = 0; round < 64; ++round) {
      const unsigned events = wire_.progress() + wire_.deliver(kDeliverLimit) + links_.poll();
      if (events == 0 && round > 3) break;
    }
  };
  const auto end_operations = [&peer] {
    while (PeerOp* op = peer.outstanding.pop_front()) op->lost(*op);
  };
  take_in_what_has_come();  // what it sent before it died already lies in our memory
  const bool has_left = peer.joined && peer.ended;
  if (!has_left) {
    log::info("rank {} (pid {}) is gone", peer.rank.value, peer.record.pid);
    counters_.peers_lost.add();
  }
  peer.lost = true;
  leases_.give_up(peer.rank.value);
  if (has_left) {  // it lives, and frees its memory once it is told: so nothing here may use that any more
    end_operations();
    take_in_what_has_come();
  }
  if (peer.joined) detector_.forget(peer.rank.value);
  if (peer.joined && parting_ != nullptr) parting_(parting_context_, peer);
  if (peer.endpoint != nullptr) wire_.disconnect(peer.endpoint);
  peer.endpoint = nullptr;
  links_.drop(peer.rank.value);
  end_operations();
}

void Peers::disconnect() noexcept {
  for_each([this](Peer& peer) {
    if (peer.endpoint != nullptr) wire_.disconnect(peer.endpoint);
    peer.lost = true;  // what still arrives must not be answered
  });
}

void Peers::forget_outstanding() noexcept {
  for_each([](Peer& peer) {
    while (peer.outstanding.pop_front() != nullptr) {
    }
  });
}

}  // namespace brant
