#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/mpi/calls.h"
#include "models/mpi/checks/same_call.h"
#include "models/mpi/communicators.h"
#include "models/mpi/duplicate_request.h"
#include "models/mpi/dynamic/connections.h"
#include "models/mpi/enqueue/enqueue_thread.h"
#include "models/mpi/memory_alloc_kinds.h"
#include "models/mpi/posting.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

/// What a member wants from MPI_Comm_split.
struct Wish {
  int color;
  int key;
  int rank;
};

/// The members of a group that want this color.
SharedMembers of_color(const Members& group, std::vector<Wish> wishes, int color) {
  std::erase_if(wishes, [color](const Wish& wish) { return wish.color != color; });
  std::ranges::stable_sort(wishes, {}, &Wish::key);
  std::vector<RankId> ids;
  ids.reserve(wishes.size());
  for (const Wish& wish : wishes) ids.push_back(group[wish.rank]);
  return std::make_shared<Members>(std::move(ids));
}

/// Between two groups, a color that one of them has not gives none.
void split(Communicator& parent, int color, int key, MPI_Comm* newcomm) {
  Told<Wish> wishes = tell_all(parent, Wish{color, key, parent.rank});
  *newcomm = MPI_COMM_NULL;
  if (color == MPI_UNDEFINED) return;
  SharedMembers members = of_color(*parent.members, std::move(wishes.members), color);
  if (!parent.between_groups()) {
    *newcomm = publish(make_communicator(current_rank(), std::move(members), {parent.context}), parent);
    return;
  }
  SharedMembers remote = of_color(*parent.remote, std::move(wishes.remote), color);
  if (remote->size() == 0) return;
  *newcomm =
      publish(make_communicator(current_rank(), std::move(members), std::move(remote), {parent.context}), parent);
}

/// The same number at the ranks of one host: the lowest of them.
int host_of(Communicator& parent) {
  const std::uint64_t name = process()->host_number();
  std::vector<std::uint64_t> names(static_cast<std::size_t>(parent.team().size()));
  gather_from_all(parent, &name, names.data(), sizeof name);
  return static_cast<int>(std::ranges::find(names, name) - names.begin());
}

/// Whether it asks for the ranks of each host, by what all names there are for that.
bool asks_for_hosts(int split_type, MPI_Info info) {
  if (split_type == MPI_COMM_TYPE_SHARED) return true;
  const bool guided = split_type == MPI_COMM_TYPE_HW_GUIDED || split_type == MPI_COMM_TYPE_RESOURCE_GUIDED;
  if (!guided || info == MPI_INFO_NULL) return false;
  const Info::Entry* resource = info_of(info).find("mpi_hw_resource_type");
  return resource != nullptr && resource->second == "mpi_shared_memory";
}

/// How two groups compare; what differs more is larger.
int compare_groups(const Members& first, const Members& second) {
  if (std::ranges::equal(first.ids(), second.ids())) return MPI_CONGRUENT;
  return std::ranges::is_permutation(first.ids(), second.ids()) ? MPI_SIMILAR : MPI_UNEQUAL;
}

/// What a member of one of two groups says in MPI_Comm_create, if it has no rank in the new group.
constexpr int kNotChosen = MPI_UNDEFINED;
constexpr int kWrongGroup = -1;

/// The members of a group in the order of the ranks that they have in the new one.
SharedMembers chosen_of(const Members& group, const std::vector<int>& ranks) {
  std::vector<std::pair<int, RankId>> chosen;
  for (int i = 0; i < group.size(); ++i) {
    const int rank = ranks[static_cast<std::size_t>(i)];
    require(rank != kWrongGroup, MPI_ERR_GROUP, "the group has a rank that is not in the group of its process here");
    if (rank != kNotChosen) chosen.emplace_back(rank, group[i]);
  }
  std::ranges::sort(chosen);
  std::vector<RankId> ids;
  ids.reserve(chosen.size());
  for (const auto& [rank, id] : chosen) ids.push_back(id);
  return std::make_shared<Members>(std::move(ids));
}

/// `group`: some of the members, who alone take part.
void create_within(Communicator& parent, SharedMembers group, std::int32_t tag, MPI_Comm* newcomm) {
  for (const RankId id : group->ids()) {
    require(parent.members->find(id) != MPI_UNDEFINED, MPI_ERR_GROUP,
            "rank {} of MPI_COMM_WORLD is in the group, and not in the communicator", id.value);
  }
  *newcomm = MPI_COMM_NULL;
  if (group->find(current_rank().id) == MPI_UNDEFINED) return;
  *newcomm = publish(make_communicator(current_rank(), std::move(group), {parent.context, tag}), parent);
}

/// Each says its rank in the new group, since nobody knows what the other group chooses.
void create_between(Communicator& parent, const Members& group, MPI_Comm* newcomm) {
  const auto is_member = [&](RankId id) { return parent.members->find(id) != MPI_UNDEFINED; };
  const bool fits = std::ranges::all_of(group.ids(), is_member);
  const int own = fits ? group.find(current_rank().id) : kWrongGroup;
  const Told<int> ranks = tell_all(parent, own);
  SharedMembers members = chosen_of(*parent.members, ranks.members);
  SharedMembers remote = chosen_of(*parent.remote, ranks.remote);
  *newcomm = MPI_COMM_NULL;
  if (own == kNotChosen || members->size() == 0 || remote->size() == 0) return;
  *newcomm =
      publish(make_communicator(current_rank(), std::move(members), std::move(remote), {parent.context}), parent);
}

/// What a copy of a communicator has besides its members.
void copy_contents(const Communicator& parent, MPI_Comm handle, Communicator& copy) {
  copy.topology = parent.topology;
  const int outcome = parent.attributes.copy_to(copy.attributes, process()->key_values(), handle);
  require(outcome == MPI_SUCCESS, outcome, "the program's function that copies an attribute failed");
}

/// Waits for nobody, but where the parent is such a copy itself, and has no team yet.
void begin_copy(Communicator& parent, MPI_Comm handle, const decltype(Info::entries)& entries, MPI_Comm* newcomm,
                MPI_Request* request) {
  require_place(static_cast<const void*>(newcomm), "newcomm");
  require_place(static_cast<const void*>(request), "request");
  *newcomm = MPI_COMM_NULL;
  static_cast<void>(parent.team());
  std::unique_ptr<Communicator> made = make_alike_later(parent);
  copy_contents(parent, handle, *made);
  made->info.entries = entries;
  auto copying = std::make_unique<DuplicateRequest>(current_rank(), parent, *made);
  *newcomm = publish(std::move(made), parent);
  hand_out(std::move(copying), false, request);
}

}  // namespace

int comm_rank(MPI_Comm comm, int* rank) noexcept {
  return on_communicator("MPI_Comm_rank", comm, [&](const Communicator& c) {
    require_place(rank, "rank");
    *rank = c.rank;
  });
}

int comm_size(MPI_Comm comm, int* size) noexcept {
  return on_communicator("MPI_Comm_size", comm, [&](const Communicator& c) {
    require_place(size, "size");
    *size = c.size();
  });
}

int comm_test_inter(MPI_Comm comm, int* flag) noexcept {
  return on_communicator("MPI_Comm_test_inter", comm, [&](const Communicator& c) {
    require_place(flag, "flag");
    *flag = c.between_groups() ? 1 : 0;
  });
}

int comm_group(MPI_Comm comm, MPI_Group* group) noexcept {
  return on_communicator("MPI_Comm_group", comm, [&](const Communicator& c) {
    require_place(static_cast<const void*>(group), "group");
    *group = publish_group(c.members, c.session);
  });
}

int comm_compare(MPI_Comm comm1, MPI_Comm comm2, int* result) noexcept {
  return on_communicator("MPI_Comm_compare", comm1, [&](const Communicator& first) {
    const Communicator& second = communicator_of(comm2);
    require_place(result, "result");
    *result =
        &first == &second ? MPI_IDENT
        : first.between_groups() != second.between_groups()
            ? MPI_UNEQUAL
            : std::max(compare_groups(*first.members, *second.members), compare_groups(first.peers(), second.peers()));
  });
}

namespace {

void duplicate(Communicator& c, MPI_Comm comm, const decltype(Info::entries)& hints, MPI_Comm* newcomm) {
  require_place(static_cast<const void*>(newcomm), "newcomm");
  *newcomm = MPI_COMM_NULL;
  require_same_call(c);
  std::unique_ptr<Communicator> made = make_alike(current_rank(), c);
  copy_contents(c, comm, *made);
  made->info.entries = hints;
  *newcomm = publish(std::move(made), c);
}

}  // namespace

int comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm) noexcept {
  return on_communicator("MPI_Comm_dup_with_info", comm, [&](Communicator& c) {
    duplicate(c, comm, info != MPI_INFO_NULL ? info_of(info).entries : decltype(c.info.entries){}, newcomm);
  });
}

int comm_dup(MPI_Comm comm, MPI_Comm* newcomm) noexcept {
  return on_communicator("MPI_Comm_dup", comm, [&](Communicator& c) { duplicate(c, comm, c.info.entries, newcomm); });
}

int comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) noexcept {
  return on_communicator("MPI_Comm_idup_with_info", comm, [&](Communicator& c) {
    begin_copy(c, comm, info != MPI_INFO_NULL ? info_of(info).entries : decltype(c.info.entries){}, newcomm, request);
  });
}

int comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) noexcept {
  return on_communicator("MPI_Comm_idup", comm,
                         [&](Communicator& c) { begin_copy(c, comm, c.info.entries, newcomm, request); });
}

int comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm) noexcept {
  return on_communicator("MPI_Comm_split", comm, [&](Communicator& c) {
    require_place(static_cast<const void*>(newcomm), "newcomm");
    require(color >= 0 || color == MPI_UNDEFINED, MPI_ERR_ARG, "the color {} is negative and not MPI_UNDEFINED", color);
    split(c, color, key, newcomm);
  });
}

int comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) noexcept {
  return on_communicator("MPI_Comm_split_type", comm, [&](Communicator& c) {
    require_place(static_cast<const void*>(newcomm), "newcomm");
    const bool known = split_type == MPI_COMM_TYPE_SHARED || split_type == MPI_UNDEFINED ||
                       (split_type >= MPI_COMM_TYPE_HW_UNGUIDED && split_type <= MPI_COMM_TYPE_RESOURCE_GUIDED);
    require(known, MPI_ERR_ARG, "{} is no way to split a communicator", split_type);
    const int host = host_of(c);
    // Of parts of a host brant knows nothing: who asks for them gets none, as the standard allows.
    split(c, asks_for_hosts(split_type, info) ? host : MPI_UNDEFINED, key, newcomm);
  });
}

int comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm) noexcept {
  return on_communicator("MPI_Comm_create_group", comm, [&](Communicator& c) {
    require_place(static_cast<const void*>(newcomm), "newcomm");
    require_one_group(c);
    require(tag >= 0, MPI_ERR_TAG, "the tag {} is negative", tag);
    create_within(c, shared_members_of(group), tag, newcomm);
  });
}

/// Of one group, those that are not in the new one need not take part, since its members agree among themselves; the
/// standard has all of them call it, which is checked where calls are.
int comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm) noexcept {
  return on_communicator("MPI_Comm_create", comm, [&](Communicator& c) {
    require_place(static_cast<const void*>(newcomm), "newcomm");
    if (c.between_groups()) {
      create_between(c, *shared_members_of(group), newcomm);
    } else {
      require_same_call(c);
      create_within(c, shared_members_of(group), Making::kNoTag, newcomm);
    }
  });
}

int comm_free(MPI_Comm* comm) noexcept {
  return on_leaving_communicator("MPI_Comm_free", comm != nullptr ? *comm : MPI_COMM_NULL, [&](Communicator& c) {
    require(!is_predefined(*comm), MPI_ERR_COMM, "{} is there as long as MPI is", c.name);
    drain_stream_of(c);
    const int outcome = c.attributes.remove_all(process()->key_values(), *comm);
    require(outcome == MPI_SUCCESS, outcome, "the program's function that deletes an attribute failed");
    if (*comm == current_rank().parent) current_rank().parent = MPI_COMM_NULL;
    *comm = MPI_COMM_NULL;
    if (checks() != nullptr) [[unlikely]]
      checks()->census.remove(&c);
    const std::unique_ptr<CallError> late = part_from_stream(c);
    const int told = late != nullptr ? hand_over(&c, "MPI_Comm_free", *late) : kSuccess;
    drop_communicator(c);
    return told;
  });
}

int comm_disconnect(MPI_Comm* comm) noexcept {
  return on_leaving_communicator("MPI_Comm_disconnect", comm != nullptr ? *comm : MPI_COMM_NULL, [&](Communicator& c) {
    drain_stream_of(c);
    current_rank().wait([&] { return c.users == 1; });
    if (has_strangers(c)) process()->connections().disconnect(c);
    return comm_free(comm);
  });
}

int comm_set_name(MPI_Comm comm, const char* comm_name) noexcept {
  return on_communicator("MPI_Comm_set_name", comm, [&](Communicator& c) {
    require_place(comm_name, "comm_name");
    c.name = object_name(comm_name);
  });
}

int comm_get_name(MPI_Comm comm, char* comm_name, int* resultlen) noexcept {
  if (comm == MPI_COMM_NULL) {
    store_text("MPI_COMM_NULL", comm_name, MPI_MAX_OBJECT_NAME, resultlen);
    return MPI_SUCCESS;
  }
  return on_communicator("MPI_Comm_get_name", comm, [&](const Communicator& c) {
    require_place(comm_name, "comm_name");
    store_text(c.name, comm_name, MPI_MAX_OBJECT_NAME, resultlen);
  });
}

int comm_set_info(MPI_Comm comm, MPI_Info info) noexcept {
  return on_communicator("MPI_Comm_set_info", comm, [&](Communicator& c) {
    for (const auto& [key, value] : info_of(info).entries) c.info.set(key, value);
  });
}

int comm_get_info(MPI_Comm comm, MPI_Info* info_used) noexcept {
  return on_communicator("MPI_Comm_get_info", comm, [&](const Communicator& c) {
    require_place(static_cast<const void*>(info_used), "info_used");
    *info_used = publish_used(c.info);
  });
}

}  // namespace brant::mpi::api
