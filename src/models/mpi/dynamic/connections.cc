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

/// What a process parts from in MPI_Finalize; else it is the context of a communicator, and 1.
constexpr std::uint64_t kAll = 0;
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

std::optional<RankId> Connections::find_in_job(std::uint64_t name) {
  if (of_job_.empty()) {
    for (const Peer& peer : process_.engine().peers()) of_job_[process_name(peer.record)] = RankId{peer.rank.value};
  }
  const auto found = of_job_.find(name);
  return found != of_job_.end() ? std::optional(found->second) : std::nullopt;
}

std::optional<RankId> Connections::find(std::uint64_t name) {
  if (const std::optional<RankId> here = find_in_job(name)) return here;
  const auto found = joined_.find(name);
  if (found == joined_.end()) return std::nullopt;
  const Peer* peer = process_.engine().peers().joined().find(found->second.value);
  if (peer == nullptr || peer->lost || peer->suspected) return std::nullopt;
  return RankId{found->second.value};
}

/// Two that call each other at the same time have two connections, of which each takes the one it knows first: so what
/// calls tells the other which one they use (`met`).
RankId Connections::know(std::uint64_t name, Rank rank) {
  if (const std::optional<RankId> known = find(name)) return *known;
  Peer* peer = process_.engine().peers().joined().find(rank.value);
  if (peer == nullptr || peer->lost) throw Error(Status::peer_lost, "a process of another job ended as it was met");
  joined_[name] = rank;
  watch(*peer);
  return {rank.value};
}

void Connections::watch(Peer& peer) {
  auto& place = watches_[peer.rank];
  if (place == nullptr) place = std::make_unique<Watch>(*this, peer);
}

void Connections::lose(Rank rank) noexcept {
  watches_.erase(rank);
  std::erase_if(joined_, [rank](const auto& known) { return known.second == rank; });
  uses_.erase(rank);
  std::erase_if(parted_, [rank](const auto& said) { return said.second == rank; });
  std::erase_if(met_, [rank](const auto& said) { return said.second == rank; });
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

std::vector<RankId> Connections::meet(std::span<const Contact> contacts, bool calls, std::uint64_t label) {
  take_in_those_who_joined();
  calls ? call_all(contacts) : await_all(contacts, label);
  std::vector<RankId> ids;
  ids.reserve(contacts.size());
  for (const Contact& contact : contacts) {
    const std::optional<RankId> id = calls ? find(contact.name) : find_met(contact, label);
    if (!id) throw Error(Status::peer_lost, "a process of another job ended as it was met");
    ids.push_back(*id);
  }
  if (calls) {
    tell_that_met(ids, label);
  } else {
    std::erase_if(met_, [label](const auto& said) { return said.first.first == label; });
  }
  return ids;
}

/// One that is lost meanwhile is noticed by what it is needed for.
void Connections::tell_that_met(std::span<const RankId> ids, std::uint64_t label) {
  std::size_t told = 0;
  process_.rank().wait([&]() noexcept {
    for (; told < ids.size(); ++told) {
      if (!is_stranger(ids[told]) || process_.transport().is_lost(ids[told])) continue;
      const Status status = process_.transport().tell(Rank{ids[told].value}, Word::met, {.port = label});
      if (status == Status::limit_reached) return false;
    }
    return true;
  });
}

/// All at once. What has begun is ended in any case. Those that another thread is joining are not joined twice.
void Connections::call_all(std::span<const Contact> contacts) {
  process_.rank().wait([&] {
    return std::ranges::none_of(contacts, [this](const Contact& each) { return calling_.contains(each.name); });
  });
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
      calling_.insert(contact.name);
    } catch (const Error&) {
      fault = std::current_exception();
    }
  }
  const auto limit = process_.engine().options().boot_timeout;
  const auto is_decided = [&](const Call& call) { return steps.is_join_decided(call.rank); };
  static_cast<void>(process_.runtime().worker().wait_until(
      [&]() noexcept { return std::ranges::all_of(under_way, is_decided); }, limit));
  for (const Call& call : under_way) {
    calling_.erase(call.name);
    try {
      steps.end_join(call.rank, limit);
      static_cast<void>(know(call.name, call.rank));
    } catch (const Error&) {
      if (fault == nullptr) fault = std::current_exception();
    }
  }
  if (fault != nullptr) std::rethrow_exception(fault);
}

std::optional<RankId> Connections::find_met(const Contact& contact, std::uint64_t label) {
  if (const std::optional<RankId> here = find_in_job(contact.name)) return here;
  const auto found = met_.find({label, contact.name});
  return found != met_.end() ? std::optional(RankId{found->second.value}) : std::nullopt;
}

void Connections::await_all(std::span<const Contact> contacts, std::uint64_t label) {
  const auto until = std::chrono::steady_clock::now() + process_.engine().options().boot_timeout;
  for (const Contact& contact : contacts) {
    while (!find_met(contact, label)) {
      static_cast<void>(process_.runtime().worker().wait_until(
          [&]() noexcept {
            return find_met(contact, label).has_value() || JoinSteps(process_.runtime()).has_accepted();
          },
          kLookForJoined));
      take_in_those_who_joined();
      if (find_met(contact, label)) break;
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
  auto nobody_calls = [&]() noexcept { return !calling_.contains(name); };
  static_cast<void>(process_.runtime().worker().wait_until(nobody_calls, limit.value_or(Worker::kForever)));
  if (!nobody_calls()) throw Error(Status::timed_out, "another thread has tried to join the process for as long");
  if (const std::optional<RankId> known = find(name)) return *known;
  JoinSteps steps(process_.runtime());
  const Rank rank = steps.begin_join(address);
  struct Calling {
    std::set<std::uint64_t>& names;
    const std::uint64_t name;
    ~Calling() { names.erase(name); }
  } const calling{calling_, *calling_.insert(name).first};
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
  std::set<Rank> ending;
  for (const Rank rank : others) {
    const auto found = uses_.find(rank);
    if (found == uses_.end() || --found->second != 0) continue;
    uses_.erase(found);
    if (parted_.contains({kAll, rank})) ending.insert(rank);
  }
  // Those that are in MPI_Finalize wait to hear that nothing connects the two any more.
  await_parting(std::move(ending), kAll);
}

bool Connections::has_parted(const Communicator& communicator, RankId id) const noexcept {
  return parted_.contains({communicator.context + std::uint64_t{1}, Rank{id.value}});
}

void Connections::part() {
  std::set<Rank> others;
  for (const auto& [rank, uses] : uses_) others.insert(rank);
  await_parting(std::move(others), kAll);
}

/// Of each pair by itself: nobody waits for what somebody tells a third, who may have gone by then.
void Connections::await_parting(std::set<Rank> others, std::uint64_t what) {
  std::set<Rank> told;
  const auto has_parted = [&](Rank rank) {
    const Peer* peer = process_.engine().peers().joined().find(rank.value);
    if (peer == nullptr || peer->lost) return true;
    if (!told.contains(rank) && process_.transport().tell(rank, Word::parting, {.port = what}) == Status::ok)
      told.insert(rank);
    return told.contains(rank) && (parted_.contains({what, rank}) || parted_.contains({kAll, rank}) || peer->ended);
  };
  process_.rank().wait([&] { return std::ranges::count_if(others, has_parted) == std::ssize(others); });
  for (const Rank rank : others) parted_.erase({what, rank});
}

void Connections::hear(Rank from, Word word, const DoorWord& body) noexcept {
  try {
    if (word == Word::parting) {
      if (!joined_rank::is_one(from.value)) return;
      parted_.insert({body.port, from});
      // All that it has sent came before.
      if (body.port != kAll) process_.transport().give_up_receives(from, body.port - 1);
    } else if (word == Word::met) {
      Peer* const peer = process_.engine().peers().joined().find(from.value);
      if (peer == nullptr || peer->lost) return;
      watch(*peer);
      met_[{body.port, process_name(peer->record)}] = from;
    } else {
      ports_.hear(from, word, body);
    }
  } catch (const std::bad_alloc&) {
    end_job(1, "brant MPI: no memory for a process of another job");
  }
}

}  // namespace brant::mpi
