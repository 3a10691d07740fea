#include "models/mpi/dynamic/connections.h"

#include <algorithm>
#include <exception>
#include <string>

#include <fmt/format.h>

#include "core/join_address.h"
#include "core/joined_rank.h"
#include "core/process_name.h"
#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

constexpr auto kLookForJoined = std::chrono::milliseconds(20);

bool is_stranger(RankId id) noexcept { return joined_rank::is_one(id.value); }

/// Of this host: others are noticed by the network alone.
bool has_ended(const Contact& contact, const PeerRecord& mine) {
  const JoinIdentity who = unpack_join_address(contact.address).identity;
  return who.record.host_id == mine.host_id && who.record.pid_namespace == mine.pid_namespace &&
         check_process(who.mark) == Status::peer_lost;
}

}  // namespace

bool has_strangers(std::span<const RankId> ids) noexcept { return std::ranges::any_of(ids, is_stranger); }

bool has_strangers(const Communicator& communicator) noexcept {
  return has_strangers(communicator.members->ids()) || has_strangers(communicator.peers().ids());
}

/// Hears of the end of a process of another job, also where no message waits for it.
class Connections::Watch final : public PeerOp {
 public:
  Watch(Connections& connections, Peer& peer) noexcept : connections_(connections), rank_(peer.rank) {
    lost = [](PeerOp& op) noexcept {
      auto& watch = static_cast<Watch&>(op);
      watch.connections_.lose(watch.rank_);
    };
    peer.add_outstanding(*this);
  }

 private:
  Connections& connections_;
  const Rank rank_;
};

Connections::Connections(Process& process) noexcept : process_(process), ports_(process), spawned_(process) {}

Connections::~Connections() {
  for (const auto& [rank, watch] : watches_) {
    if (Peer* peer = process_.engine().peers().joined().find(rank.value)) peer->remove_outstanding(*watch);
  }
}

// Who is who
// -------------------------------------------------------------------------------------------------------------------

std::uint64_t Connections::name_of(RankId id) const {
  const Peer* peer = process_.engine().peers().find(id.value);
  require(peer != nullptr, MPI_ERR_PROC_ABORTED, "a process of another job, known as rank {} here, has ended",
          id.value);
  return process_name(peer->record);
}

Contact Connections::own_contact() { return {name_of(process_.rank().id), process_.runtime().address()}; }

std::optional<RankId> Connections::find(std::uint64_t name) {
  if (of_job_.empty()) {
    for (const Peer& peer : process_.engine().peers()) of_job_[process_name(peer.record)] = RankId{peer.rank.value};
  }
  if (const auto found = of_job_.find(name); found != of_job_.end()) return found->second;
  const auto found = joined_.find(name);
  if (found == joined_.end()) return std::nullopt;
  const Peer* peer = process_.engine().peers().joined().find(found->second.value);
  if (peer == nullptr || peer->lost || peer->suspected) return std::nullopt;
  return RankId{found->second.value};
}

/// Two that call each other at the same time have two connections, of which either is as good as the other.
RankId Connections::know(std::uint64_t name, Rank rank) {
  if (const std::optional<RankId> known = find(name)) return *known;
  Peer* peer = process_.engine().peers().joined().find(rank.value);
  if (peer == nullptr || peer->lost) throw Error(Status::peer_lost, "a process of another job ended as it was met");
  joined_[name] = rank;
  watches_[rank] = std::make_unique<Watch>(*this, *peer);
  return {rank.value};
}

void Connections::lose(Rank rank) noexcept {
  watches_.erase(rank);
  std::erase_if(joined_, [rank](const auto& known) { return known.second == rank; });
  uses_.erase(rank);
  std::erase_if(parted_, [rank](const auto& said) { return said.second == rank; });
  ports_.forget(rank);
  process_.transport().lose(rank);
}

void Connections::take_in_those_who_joined() {
  Runtime& runtime = process_.runtime();
  while (JoinSteps(runtime).has_accepted()) {
    const std::optional<Rank> rank = runtime.accept(std::chrono::nanoseconds(0));
    const Peer* peer = rank ? process_.engine().peers().joined().find(rank->value) : nullptr;
    if (peer != nullptr && !peer->lost) static_cast<void>(know(process_name(peer->record), *rank));
  }
}

// Meeting
// -------------------------------------------------------------------------------------------------------------------

std::vector<RankId> Connections::meet(std::span<const Contact> contacts, bool calls) {
  take_in_those_who_joined();
  calls ? call_all(contacts) : await_all(contacts);
  std::vector<RankId> ids;
  ids.reserve(contacts.size());
  for (const Contact& contact : contacts) {
    const std::optional<RankId> id = find(contact.name);
    if (!id) throw Error(Status::peer_lost, "a process of another job ended as it was met");
    ids.push_back(*id);
  }
  return ids;
}

/// All at once. What has begun is ended in any case.
void Connections::call_all(std::span<const Contact> contacts) {
  struct Call {
    std::uint64_t name;
    Rank rank;
  };
  JoinSteps steps(process_.runtime());
  std::vector<Call> under_way;
  std::exception_ptr fault;
  for (const Contact& contact : contacts) {
    if (fault != nullptr || find(contact.name)) continue;
    try {
      under_way.reserve(under_way.size() + 1);
      under_way.push_back({contact.name, steps.begin_join(contact.address)});
    } catch (const Error&) {
      fault = std::current_exception();
    }
  }
  const auto limit = process_.engine().options().boot_timeout;
  const auto is_decided = [&](const Call& call) { return steps.is_join_decided(call.rank); };
  static_cast<void>(process_.runtime().worker().wait_until(
      [&]() noexcept { return std::ranges::all_of(under_way, is_decided); }, limit));
  for (const Call& call : under_way) {
    try {
      steps.end_join(call.rank, limit);
      static_cast<void>(know(call.name, call.rank));
    } catch (const Error&) {
      if (fault == nullptr) fault = std::current_exception();
    }
  }
  if (fault != nullptr) std::rethrow_exception(fault);
}

void Connections::await_all(std::span<const Contact> contacts) {
  const auto until = std::chrono::steady_clock::now() + process_.engine().options().boot_timeout;
  for (const Contact& contact : contacts) {
    while (!find(contact.name)) {
      static_cast<void>(process_.runtime().worker().wait_until(
          [this]() noexcept { return JoinSteps(process_.runtime()).has_accepted(); }, kLookForJoined));
      take_in_those_who_joined();
      if (find(contact.name)) break;
      const JoinIdentity who = unpack_join_address(contact.address).identity;
      if (has_ended(contact, process_.engine().peers().mine()))
        throw Error(Status::peer_lost, fmt::format("{} ended before it had joined this process", text_of(who)));
      if (std::chrono::steady_clock::now() > until) {
        throw Error(Status::timed_out, fmt::format("{} did not join this process within {} ms (BRANT_BOOT_TIMEOUT_MS)",
                                                   text_of(who), process_.engine().options().boot_timeout.count()));
      }
    }
  }
}

RankId Connections::call(std::string_view address, std::optional<std::chrono::nanoseconds> limit) {
  take_in_those_who_joined();
  const std::uint64_t name = process_name(unpack_join_address(address).identity.record);
  if (const std::optional<RankId> known = find(name)) return *known;
  JoinSteps steps(process_.runtime());
  const Rank rank = steps.begin_join(address);
  static_cast<void>(process_.runtime().worker().wait_until([&]() noexcept { return steps.is_join_decided(rank); },
                                                           limit.value_or(Worker::kForever)));
  steps.end_join(rank, limit.value_or(std::chrono::nanoseconds(0)));
  return know(name, rank);
}

// Being connected
// -------------------------------------------------------------------------------------------------------------------

namespace {

template <typename Visit>
void for_each_stranger(const Communicator& communicator, const Visit& visit) {
  for (const RankId id : communicator.members->ids()) {
    if (is_stranger(id)) visit(Rank{id.value});
  }
  if (!communicator.between_groups()) return;
  for (const RankId id : communicator.remote->ids()) {
    if (is_stranger(id)) visit(Rank{id.value});
  }
}

}  // namespace

void Connections::connect(const Communicator& communicator) {
  for_each_stranger(communicator, [this](Rank rank) {
    if (watches_.contains(rank)) ++uses_[rank];
  });
}

void Connections::disconnect(const Communicator& communicator) {
  std::set<Rank> others;
  for_each_stranger(communicator, [&](Rank rank) { others.insert(rank); });
  await_parting(others, communicator.context + std::uint64_t{1});
  for (const Rank rank : others) {
    const auto found = uses_.find(rank);
    if (found != uses_.end() && --found->second == 0) uses_.erase(found);
  }
}

void Connections::part() {
  std::set<Rank> others;
  for (const auto& [rank, uses] : uses_) others.insert(rank);
  await_parting(std::move(others), 0);
}

/// Of each pair by itself: nobody waits for what somebody tells a third, who may have gone by then.
void Connections::await_parting(std::set<Rank> others, std::uint64_t what) {
  std::set<Rank> told;
  const auto has_parted = [&](Rank rank) {
    const Peer* peer = process_.engine().peers().joined().find(rank.value);
    if (peer == nullptr || peer->lost) return true;
    if (!told.contains(rank) && process_.transport().tell(rank, Word::parting, {.port = what}) == Status::ok)
      told.insert(rank);
    return told.contains(rank) && (parted_.contains({what, rank}) || peer->ended);
  };
  process_.rank().wait([&] { return std::ranges::count_if(others, has_parted) == std::ssize(others); });
  for (const Rank rank : others) parted_.erase({what, rank});
}

void Connections::hear(Rank from, Word word, const DoorWord& body) noexcept {
  try {
    if (word == Word::parting) {
      if (joined_rank::is_one(from.value)) parted_.insert({body.port, from});
    } else {
      ports_.hear(from, word, body);
    }
  } catch (const std::bad_alloc&) {
    end_job(1, "brant MPI: no memory for a process of another job");
  }
}

}  // namespace brant::mpi
