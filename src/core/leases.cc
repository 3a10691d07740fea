#include "core/leases.h"

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/seconds.h"
#include "core/job_key.h"
#include "core/peers.h"

namespace brant {

Leases::Leases(port::Boot& boot, bool other_hosts, std::chrono::milliseconds patience)
    : boot_(boot), patience_(patience) {
  if (other_hosts && patience_ > std::chrono::milliseconds::zero()) thread_ = LeaseThread::open(patience_);
}

void Leases::start(const Peers& peers) {
  if (!held()) return;
  const port::JobInfo& job = boot_.job();
  std::vector<std::optional<SocketAddress>> addresses(static_cast<std::size_t>(job.size));
  std::optional<int> probed;  // the next one, so that not all ask the same
  for (int step = 1; step < job.size; ++step) {
    const int rank = (job.rank + step) % job.size;
    const Peer& peer = peers[rank];
    if (peers.watched_by_kernel(peer)) continue;
    const auto address = SocketAddress::from_bytes(peer.record.lease_address);
    if (!address || address->family() != thread_->address().family()) {
      log::info("rank {} is not watched: it has no lease, or an address of another family", rank);
      continue;
    }
    addresses[static_cast<std::size_t>(rank)] = address;
    if (!probed) probed = rank;
  }
  if (!probed) return thread_.reset();
  thread_->start(job.rank, job_key_for(boot_, "leases"), std::move(addresses), probed);
}

std::string Leases::words_of(Lease::Why why) const {
  const double seconds = in_seconds(patience_);
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

}  // namespace brant
