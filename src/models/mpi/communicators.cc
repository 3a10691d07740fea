#include "models/mpi/communicators.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "core/joined_rank.h"
#include "models/mpi/call_error.h"
#include "models/mpi/checks/checks.h"
#include "models/mpi/dynamic/connections.h"
#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

std::string process_for_people(Rank process) {
  if (joined_rank::is_one(process.value)) return "a process of another job";
  const RankPlacement& placement = Process::placement();
  if (placement.ranks == placement.processes) return fmt::format("rank {} of MPI_COMM_WORLD", process.value);
  const int first = placement.first_in(process.value);
  return fmt::format("the process of ranks {} to {} of MPI_COMM_WORLD", first,
                     first + placement.count_in(process.value) - 1);
}

/// The context of a new communicator, and what its members do together.
struct Agreed {
  std::uint32_t context;
  RankTeam team;
};

Agreed agree(RankState& rank, std::span<const RankId> ids, const Making& making, std::uint64_t label = 0) {
  const std::uint32_t context = agree_on_context(rank, ids, making);
  return {context, RankTeam(rank, ids, context, label)};
}

}  // namespace

const TeamWording kCommunicatorWording{
    .team = "communicator",
    .after_death = "Make a communicator of the others by MPI_Comm_create_group",
    .member = process_for_people,
};

std::unique_ptr<Communicator> make_communicator_later(RankId id, SharedMembers members, std::uint32_t context) {
  const int own = members->find(id);
  return std::make_unique<Communicator>(context, std::move(members), nullptr, own, RankTeam());
}

std::unique_ptr<Communicator> make_communicator(RankState& rank, SharedMembers members, const Making& making) {
  auto [context, team] = agree(rank, members->ids(), making);
  const int own = members->find(rank.id);
  return std::make_unique<Communicator>(context, std::move(members), nullptr, own, std::move(team));
}

std::unique_ptr<Communicator> make_communicator(RankState& rank, SharedMembers members, SharedMembers remote,
                                                const Making& making, std::uint64_t label) {
  auto [context, team] = agree(rank, in_team_order(*members, *remote), making, label);
  const int own = members->find(rank.id);
  return std::make_unique<Communicator>(context, std::move(members), std::move(remote), own, std::move(team));
}

std::unique_ptr<Communicator> make_alike(RankState& rank, const Communicator& communicator) {
  const Making making{communicator.context};
  return communicator.between_groups() ? make_communicator(rank, communicator.members, communicator.remote, making)
                                       : make_communicator(rank, communicator.members, making);
}

std::unique_ptr<Communicator> make_alike_later(const Communicator& communicator) {
  return std::make_unique<Communicator>(0, communicator.members, communicator.remote, communicator.rank, RankTeam());
}

namespace {

/// Jobs know nothing of each other's numbers, so these are as good as random.
std::uint32_t context_for_strangers(const RankState& rank) {
  const std::uint64_t seed[] = {rank.process.connections().name_of(rank.id), rank.handed_out};
  const auto mixed = static_cast<std::uint32_t>(checksum_of(std::as_bytes(std::span(seed))) >> 20);
  return Communicator::kHandedToStrangers + mixed % (Communicator::kMeeting - Communicator::kHandedToStrangers);
}

}  // namespace

/// Numbers of different ranks differ by who they are.
std::uint32_t hand_out_context(RankState& rank, const Communicator& original) {
  if (has_strangers(original)) {
    ++rank.handed_out;
    return context_for_strangers(rank);
  }
  const auto ranks = static_cast<std::uint64_t>(Process::placement().ranks);
  const std::uint64_t context =
      Communicator::kHandedOut + rank.handed_out * ranks + static_cast<std::uint64_t>(rank.id.value);
  require(context < Communicator::kHandedToStrangers, MPI_ERR_OTHER,
          "{} communicators were copied by MPI_Comm_idup: there is no number for one more", rank.handed_out);
  ++rank.handed_out;
  return static_cast<std::uint32_t>(context);
}

void Communicator::form_team() {
  team_ = between_groups() ? RankTeam(current_rank(), in_team_order(*members, *remote), context)
                           : RankTeam(current_rank(), members->ids(), context);
}

std::uint64_t communicator_label(std::span<const RankId> ids, std::uint32_t context) noexcept {
  // Jobs have numbers of their own for members; with one rank in a process, a team differs by its processes anyway.
  const std::int32_t lowest = has_strangers(ids) ? 0 : std::ranges::min_element(ids)->value;
  return (std::uint64_t{context} << 32 | static_cast<std::uint32_t>(lowest)) + 1;
}

MPI_Comm publish(std::unique_ptr<Communicator> made, ErrorHandler& handler, std::uint64_t session) noexcept {
  made->set_handler(handler);
  made->session = session;
  if (has_strangers(*made)) process()->connections().connect(*made);
  if (checks() != nullptr) [[unlikely]]
    checks()->census.add(Census::Kind::communicator, made.get());
  return handle_of<MPI_Comm>(*made.release());
}

MPI_Comm publish(std::unique_ptr<Communicator> made, const Communicator& parent) noexcept {
  return publish(std::move(made), *parent.handler, parent.session);
}

MPI_Comm publish_part(const Communicator& parent, const std::vector<int>& ranks, Topology topology) {
  if (std::ranges::find(ranks, parent.rank) == ranks.end()) return MPI_COMM_NULL;
  std::vector<RankId> ids;
  ids.reserve(ranks.size());
  for (const int rank : ranks) ids.push_back(parent.id_of(rank));
  auto made = make_communicator(current_rank(), std::make_shared<Members>(std::move(ids)), {parent.context});
  made->topology = std::move(topology);
  return publish(std::move(made), parent);
}

bool comes_first(const Members& members, const Members& remote) {
  if (!has_strangers(members.ids()) && !has_strangers(remote.ids())) return members[0] < remote[0];
  const Connections& connections = process()->connections();
  return connections.name_of(members[0]) < connections.name_of(remote[0]);
}

std::vector<RankId> in_team_order(const Members& members, const Members& remote) {
  const bool first = comes_first(members, remote);
  const std::span<const RankId> before = (first ? members : remote).ids();
  const std::span<const RankId> behind = (first ? remote : members).ids();
  std::vector<RankId> ids(before.begin(), before.end());
  ids.insert(ids.end(), behind.begin(), behind.end());
  return ids;
}

void gather_from_all(Communicator& communicator, const void* own, void* values, std::size_t bytes) {
  RankTeam& team = communicator.team();
  const auto count = static_cast<std::size_t>(team.size());
  team.run(allgather(ConstBuffer(own, bytes, MemoryKind::host), Buffer(values, bytes * count, MemoryKind::host)))
      .or_throw("the members of a communicator did not tell each other what they want");
}

}  // namespace brant::mpi
