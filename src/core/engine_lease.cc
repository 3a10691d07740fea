// The engine's part in the leases between hosts; a job of one host never comes here.
#include <sys/random.h>

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "core/engine.h"

namespace brant {
namespace {

constexpr const char* kLeaseKey = "brant.lease_key";

Lease::Key random_key() {
  Lease::Key key;
  if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size()))
    throw Error(Status::io_error, "the kernel gave no random bytes for the key of the job's leases");
  return key;
}

std::string words_of(Lease::Why why, std::chrono::milliseconds lease) {
  const double seconds = std::chrono::duration<double>(lease).count();
  switch (why) {
    case Lease::Why::silent:
      return fmt::format("it has answered nothing for {} s (BRANT_LEASE), so it was stopped or cut off", seconds);
    case Lease::Why::never_answered:
      return fmt::format(
          "it has answered nothing for {} s (BRANT_LEASE), and never before, though others have: it was stopped or cut "
          "off, or UDP to it is filtered",
          seconds);
    case Lease::Why::refused: return "its host says that the process is gone";
    case Lease::Why::told: return "it has given this process up";
  }
  return {};
}

}  // namespace

/// The key travels through the bootstrap alone, which only processes of the job can read.
void Engine::open_lease() {
  if (job().rank == 0) put_at_boot(kLeaseKey, random_key());
  if (options_.lease <= std::chrono::milliseconds::zero()) return;
  lease_ = LeaseThread::open(options_.lease);
  if (lease_) waiter_.add(lease_->event_fd());
}

void Engine::start_lease() {
  const int size = job().size;
  std::vector<std::optional<SocketAddress>> addresses(static_cast<std::size_t>(size));
  std::optional<int> probed;  // the next one, so that not all ask the same
  for (int step = 1; step < size; ++step) {
    const int rank = (job().rank + step) % size;
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (watched_by_kernel(peer)) continue;
    const auto address = SocketAddress::from_bytes(peer.record.lease_address);
    if (!address || address->family() != lease_->address().family()) {
      log::info("rank {} is not watched: it has no lease, or an address of another family", rank);
      continue;
    }
    addresses[static_cast<std::size_t>(rank)] = address;
    if (!probed) probed = rank;
  }
  if (!probed) return lease_.reset();
  const auto packed = boot().get(0, kLeaseKey);
  Lease::Key key;
  if (!packed || packed->size() != key.size()) {
    throw Error(packed ? Status::version_mismatch : packed.status(),
                fmt::format("rank {} did not get the key of the job's leases: {}. {}", job().rank,
                            status_text(packed.status()), boot().last_error()));
  }
  std::copy(packed->begin(), packed->end(), key.begin());
  lease_->start(job().rank, key, std::move(addresses), probed);
}

/// Said aloud, unlike a death: it is a judgement, and its cause may be the network or a debugger.
void Engine::hear_verdicts() noexcept {
  for (const Lease::Verdict& verdict : lease_->poll()) {
    Peer& peer = peers_[static_cast<std::size_t>(verdict.rank)];
    if (!peer.lost && !peer.ended)
      log::warn("rank {} (pid {}, on another host) is given up: {}", verdict.rank, peer.record.pid,
                words_of(verdict.why, options_.lease));
    lose(peer);
  }
}

}  // namespace brant
