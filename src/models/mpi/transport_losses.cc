#include <algorithm>
#include <new>

#include "models/mpi/dynamic/connections.h"
#include "models/mpi/process.h"
#include "models/mpi/transport.h"

namespace brant::mpi {

bool Transport::is_lost(RankId id) const noexcept {
  if (!ended_here_.empty() && std::ranges::find(ended_here_, id) != ended_here_.end()) [[unlikely]]
    return true;
  const std::int32_t process = Process::process_of(id).value;
  if (!joined_rank::is_one(process)) [[likely]]
    return lost_[static_cast<std::size_t>(process)];
  const Peer* peer = engine_.peers().joined().find(process);
  return peer == nullptr || peer->lost;
}

bool Transport::is_hopeless(const Communicator& communicator, int source) const noexcept {
  if (losses_ == 0 && ended_here_.empty() && !process_.has_connections()) [[likely]]
    return false;
  if (source != MPI_ANY_SOURCE) {
    const RankId id = communicator.id_of(source);
    return is_lost(id) || (process_.has_connections() && process_.connections().has_parted(communicator, id));
  }
  const Members& peers = communicator.peers();
  const auto cannot_send = [&](RankId id) {
    return is_lost(id) || Process::process_of(id).value == engine_.job().rank;
  };
  const bool anybody_lost = std::ranges::any_of(peers.ids(), [this](RankId id) { return is_lost(id); });
  return anybody_lost && process_.ranks().size() == 1 && std::ranges::all_of(peers.ids(), cannot_send);
}

namespace {

/// What is visited may end, and go.
template <typename Visit>
void visit_under_way(Process& process, const Visit& visit) noexcept {
  for (const auto& rank : process.ranks()) {
    Request* following = nullptr;
    for (Request* request = rank->under_way.front(); request != nullptr; request = following) {
      following = IntrusiveList<Request, &Request::hook>::next(*request);
      visit(*request);
    }
  }
}

}  // namespace

void Transport::on_trouble(void* context, Rank peer, Status) noexcept { static_cast<Transport*>(context)->lose(peer); }

void Transport::lose(Rank process) noexcept {
  if (!joined_rank::is_one(process.value)) lost_[static_cast<std::size_t>(process.value)] = true;
  ++losses_;
  visit_under_way(process_, [process](Request& request) { request.lose(process); });
}

void Transport::lose_rank(RankId id) noexcept {
  try {
    ended_here_.push_back(id);
  } catch (const std::bad_alloc&) {
    return;  // whoever waits for it waits until the others have ended
  }
  visit_under_way(process_, [id](Request& request) { request.lose_rank(id); });
}

void Transport::give_up_receives(Rank process, std::uint64_t context) noexcept {
  visit_under_way(process_, [process, context](Request& request) {
    const auto* receive = dynamic_cast<const ReceiveRequest*>(&request);
    const bool waits = receive != nullptr && receive->posted && receive->source != MPI_ANY_SOURCE;
    if (waits && receive->communicator->context == context) request.lose(process);
  });
}

}  // namespace brant::mpi
