#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "models/mpi/calls.h"
#include "models/mpi/communicators.h"
#include "models/mpi/dynamic/connections.h"
#include "models/mpi/dynamic/meeting.h"
#include "models/mpi/dynamic/talk.h"
#include "models/mpi/posting.h"
#include "mpi_generated/api.h"

/// Communicators between two groups: how they are made, and what they know of their other group.
namespace brant::mpi::api {

namespace {

std::vector<std::int32_t> numbers_of(const Members& members) {
  std::vector<std::int32_t> numbers;
  numbers.reserve(members.ids().size());
  for (const RankId id : members.ids()) numbers.push_back(id.value);
  return numbers;
}

/// What the leaders of two groups tell each other: the ranks of their groups. None where one of them, or their common
/// communicator, has members of several jobs, who know each other by contacts alone.
std::vector<std::int32_t> swap_groups(Communicator& peer, int remote_leader, int tag, const Members& own) {
  require_destination(peer, remote_leader, tag);
  require(remote_leader != MPI_PROC_NULL, MPI_ERR_RANK, "the leader of the other group is MPI_PROC_NULL");
  const bool strangers = has_strangers(peer) || has_strangers(own.ids());
  const std::vector<std::int32_t> given = strangers ? std::vector<std::int32_t>() : numbers_of(own);
  const std::vector<std::byte> got =
      Talk(current_rank(), peer, remote_leader, tag).swap(std::as_bytes(std::span(given)));
  std::vector<std::int32_t> numbers(strangers ? 0 : got.size() / sizeof(std::int32_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), got.data(), got.size());
  return numbers;
}

/// What the leader of a group knows of the other one.
struct OtherGroup {
  bool reached = false;
  std::vector<std::int32_t> numbers;  ///< Of its ranks; none with strangers.
  Making making;                      ///< As the leaders name what both groups make.
};

/// What the leader knows, at all ranks of its group.
void tell_group(Communicator& local, int leader, OtherGroup& other) {
  const auto from_leader = [&](std::span<std::int32_t> values) {
    local.team().run(broadcast(Buffer(values), leader)).or_throw("the leader of this group told nothing of the other");
  };
  std::array<std::int32_t, 4> said = {other.reached ? 1 : 0, static_cast<std::int32_t>(other.numbers.size()),
                                      static_cast<std::int32_t>(other.making.parent), other.making.tag};
  from_leader(said);
  other.reached = said[0] != 0;
  other.making = {static_cast<std::uint32_t>(said[2]), said[3]};
  other.numbers.resize(static_cast<std::size_t>(said[1]));
  if (!other.numbers.empty()) from_leader(other.numbers);
}

/// What sessions make has no parent: it is named by the tag of the program.
Making making_of(const char* tag) noexcept {
  const std::string_view text = tag != nullptr ? tag : "";
  return {current_rank().self->context,
          static_cast<std::int32_t>(checksum_of(std::as_bytes(std::span(text))) & kTagMax)};
}

SharedMembers members_from(const std::vector<std::int32_t>& numbers) {
  std::vector<RankId> ids;
  ids.reserve(numbers.size());
  for (const std::int32_t number : numbers) ids.push_back({number});
  return std::make_shared<Members>(std::move(ids));
}

void require_disjoint(const Members& members, const Members& remote) {
  for (const RankId id : members.ids()) {
    require(remote.find(id) == MPI_UNDEFINED, MPI_ERR_GROUP, "rank {} of MPI_COMM_WORLD is in both groups", id.value);
  }
}

/// All members of a group say whether theirs comes behind the other.
bool agreed(const std::vector<int>& high) {
  require(std::ranges::all_of(high, [&](int one) { return one == high.front(); }), MPI_ERR_ARG,
          "the members of one group say different things of which group is the high one");
  return high.front() != 0;
}

void require_leader(const Members& group, int leader) {
  require(group.has(leader), MPI_ERR_RANK, "the leader {} is outside a group of {} ranks", leader, group.size());
}

/// What goes wrong is handed to the handler that the new communicator is to have. `group`: its own.
template <typename Body>
int from_groups(const char* function, MPI_Group group, MPI_Errhandler errhandler, MPI_Comm* place,
                Body&& body) noexcept {
  return call(function, [&] {
    require_place(static_cast<const void*>(place), "the new communicator");
    ErrorHandler& handler = error_handler_of(errhandler);
    *place = MPI_COMM_NULL;
    const Unmade unmade{handler, current_rank().has_world() ? MPI_COMM_SELF : MPI_COMM_NULL};
    return call(function, &unmade, [&] {
      if (std::unique_ptr<Communicator> made = body())
        *place = publish(std::move(made), handler, session_number_of(group));
    });
  });
}

}  // namespace

int comm_remote_size(MPI_Comm comm, int* size) noexcept {
  return on_communicator("MPI_Comm_remote_size", comm, [&](const Communicator& c) {
    require_place(size, "size");
    require_two_groups(c);
    *size = c.remote->size();
  });
}

int comm_remote_group(MPI_Comm comm, MPI_Group* group) noexcept {
  return on_communicator("MPI_Comm_remote_group", comm, [&](const Communicator& c) {
    require_place(static_cast<const void*>(group), "group");
    require_two_groups(c);
    *group = publish_group(c.remote, c.session);
  });
}

int intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
                     MPI_Comm* newintercomm) noexcept {
  return on_communicator("MPI_Intercomm_create", local_comm, [&](Communicator& local) {
    require_place(static_cast<const void*>(newintercomm), "newintercomm");
    require_one_group(local);
    require_rank(local, local_leader, "the leader");
    *newintercomm = MPI_COMM_NULL;
    OtherGroup other;
    std::exception_ptr fault;
    if (local.rank == local_leader) {
      try {
        Communicator& peer = communicator_of(peer_comm);
        other.numbers = swap_groups(peer, remote_leader, tag, *local.members);
        other.reached = true;
        other.making = {peer.context, tag};
      } catch (const CallError&) {
        fault = std::current_exception();  // the others must hear of it first
      }
    }
    tell_group(local, local_leader, other);
    if (fault != nullptr) std::rethrow_exception(fault);
    require(other.reached, MPI_ERR_OTHER, "the leader of this group, rank {}, did not reach that of the other",
            local_leader);
    if (other.numbers.empty()) {
      *newintercomm =
          publish(introduce_group(local, local_leader,
                                  [&] { return Talk(current_rank(), communicator_of(peer_comm), remote_leader, tag); }),
                  local);
      return;
    }
    SharedMembers remote = members_from(other.numbers);
    require_disjoint(*local.members, *remote);
    auto made = make_communicator(current_rank(), local.members, std::move(remote), other.making);
    *newintercomm = publish(std::move(made), local);
  });
}

int intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm* newintracomm) noexcept {
  return on_communicator("MPI_Intercomm_merge", intercomm, [&](Communicator& c) {
    require_place(static_cast<const void*>(newintracomm), "newintracomm");
    require_two_groups(c);
    *newintracomm = MPI_COMM_NULL;
    const Told<int> told = tell_all(c, high != 0 ? 1 : 0);
    const bool own = agreed(told.members);
    const bool other = agreed(told.remote);
    std::vector<RankId> ids = in_team_order(*c.members, *c.remote);
    if (own != other) {
      const Members& first = own ? *c.remote : *c.members;
      const Members& second = own ? *c.members : *c.remote;
      ids.assign(first.ids().begin(), first.ids().end());
      ids.insert(ids.end(), second.ids().begin(), second.ids().end());
    }
    auto members = std::make_shared<Members>(std::move(ids));
    *newintracomm = publish(make_communicator(current_rank(), std::move(members), {c.context}), c);
  });
}

int comm_create_from_group(MPI_Group group, const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                           MPI_Comm* newcomm) noexcept {
  return from_groups("MPI_Comm_create_from_group", group, errhandler, newcomm, [&]() -> std::unique_ptr<Communicator> {
    SharedMembers members = shared_members_of(group);
    if (members->size() == 0) return nullptr;
    require(members->find(current_rank().id) != MPI_UNDEFINED, MPI_ERR_GROUP, "this rank is not in the group");
    auto made = make_communicator(current_rank(), std::move(members), making_of(stringtag));
    if (info != MPI_INFO_NULL) made->info.entries = info_of(info).entries;
    return made;
  });
}

int intercomm_create_from_groups(MPI_Group local_group, int local_leader, MPI_Group remote_group, int remote_leader,
                                 const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                                 MPI_Comm* newintercomm) noexcept {
  return from_groups("MPI_Intercomm_create_from_groups", local_group, errhandler, newintercomm, [&] {
    SharedMembers members = shared_members_of(local_group);
    SharedMembers remote = shared_members_of(remote_group);
    require(members->find(current_rank().id) != MPI_UNDEFINED, MPI_ERR_GROUP, "this rank is not in the local group");
    require_leader(*members, local_leader);
    require_leader(*remote, remote_leader);
    require_disjoint(*members, *remote);
    auto made = make_communicator(current_rank(), std::move(members), std::move(remote), making_of(stringtag));
    if (info != MPI_INFO_NULL) made->info.entries = info_of(info).entries;
    return made;
  });
}

}  // namespace brant::mpi::api
