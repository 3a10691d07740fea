#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/mpi/calls.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

/// `of`: the group that it is made of, whose session it belongs to.
MPI_Group make_group(std::vector<RankId> ids, MPI_Group of) {
  if (ids.empty()) return MPI_GROUP_EMPTY;
  return publish_group(std::make_shared<Members>(std::move(ids)), session_number_of(of));
}

void require_member(const Members& members, int rank) {
  require(members.has(rank), MPI_ERR_RANK, "rank {} is outside the group, which has {} members", rank, members.size());
}

/// The ranks that a list names, each once.
std::vector<bool> chosen(const Members& members, const std::vector<int>& ranks) {
  std::vector<bool> is_chosen(static_cast<std::size_t>(members.size()));
  for (const int rank : ranks) {
    require_member(members, rank);
    require(!is_chosen[static_cast<std::size_t>(rank)], MPI_ERR_RANK, "rank {} is in the list twice", rank);
    is_chosen[static_cast<std::size_t>(rank)] = true;
  }
  return is_chosen;
}

MPI_Group included(MPI_Group of, const Members& members, const std::vector<int>& ranks) {
  static_cast<void>(chosen(members, ranks));
  std::vector<RankId> ids;
  ids.reserve(ranks.size());
  for (const int rank : ranks) ids.push_back(members[rank]);
  return make_group(std::move(ids), of);
}

MPI_Group excluded(MPI_Group of, const Members& members, const std::vector<int>& ranks) {
  const std::vector<bool> is_chosen = chosen(members, ranks);
  std::vector<RankId> ids;
  for (int rank = 0; rank < members.size(); ++rank) {
    if (!is_chosen[static_cast<std::size_t>(rank)]) ids.push_back(members[rank]);
  }
  return make_group(std::move(ids), of);
}

std::vector<int> list_of(int n, const int* ranks) {
  require(n >= 0, MPI_ERR_ARG, "the number of ranks {} is negative", n);
  require(n == 0 || ranks != nullptr, MPI_ERR_ARG, "the list of ranks is null");
  return {ranks, ranks + n};
}

/// The ranks of triplets: first, last, stride.
std::vector<int> list_of(const Members& members, int n, int (*ranges)[3]) {
  require(n >= 0, MPI_ERR_ARG, "the number of ranges {} is negative", n);
  std::vector<int> ranks;
  for (int i = 0; i < n; ++i) {
    const auto [first, last, stride] = std::array{ranges[i][0], ranges[i][1], ranges[i][2]};
    require(stride != 0, MPI_ERR_ARG, "range {} has a stride of 0", i);
    require_member(members, first);
    for (std::int64_t rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride) {
      require_member(members, static_cast<int>(rank));
      ranks.push_back(static_cast<int>(rank));
    }
  }
  return ranks;
}

/// Errors go to the handler of the session that the group derives from, if it does and that is open.
template <typename Body>
int on_group(const char* function, MPI_Group handle, Body&& body) noexcept {
  require_open(function);
  Session* const session = current_rank().sessions().find(session_number_of(handle));
  return call(function, session, [&] { return body(members_of(handle)); });
}

}  // namespace

int group_size(MPI_Group group, int* size) noexcept {
  return on_group("MPI_Group_size", group, [&](const Members& members) {
    require_place(size, "size");
    *size = members.size();
  });
}

int group_rank(MPI_Group group, int* rank) noexcept {
  return on_group("MPI_Group_rank", group, [&](const Members& members) {
    require_place(rank, "rank");
    *rank = members.find(current_rank().id);
  });
}

int group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[]) noexcept {
  return on_group("MPI_Group_translate_ranks", group1, [&](const Members& members) {
    const Members& others = members_of(group2);
    require(n >= 0, MPI_ERR_ARG, "the number of ranks {} is negative", n);
    for (int i = 0; i < n; ++i) {
      if (ranks1[i] == MPI_PROC_NULL) {
        ranks2[i] = MPI_PROC_NULL;
        continue;
      }
      require_member(members, ranks1[i]);
      ranks2[i] = others.find(members[ranks1[i]]);
    }
  });
}

int group_compare(MPI_Group group1, MPI_Group group2, int* result) noexcept {
  return on_group("MPI_Group_compare", group1, [&](const Members& members) {
    const auto one = members.ids();
    const auto other = members_of(group2).ids();
    require_place(result, "result");
    *result = std::ranges::equal(one, other)            ? MPI_IDENT
              : std::ranges::is_permutation(one, other) ? MPI_SIMILAR
                                                        : MPI_UNEQUAL;
  });
}

int group_union(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) noexcept {
  return on_group("MPI_Group_union", group1, [&](const Members& members) {
    std::vector<RankId> ids(members.ids().begin(), members.ids().end());
    for (const RankId id : members_of(group2).ids()) {
      if (members.find(id) == MPI_UNDEFINED) ids.push_back(id);
    }
    *newgroup = make_group(std::move(ids), group1);
  });
}

int group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) noexcept {
  return on_group("MPI_Group_intersection", group1, [&](const Members& members) {
    std::vector<RankId> ids(members.ids().begin(), members.ids().end());
    const Members& others = members_of(group2);
    std::erase_if(ids, [&](RankId id) { return others.find(id) == MPI_UNDEFINED; });
    *newgroup = make_group(std::move(ids), group1);
  });
}

int group_difference(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) noexcept {
  return on_group("MPI_Group_difference", group1, [&](const Members& members) {
    std::vector<RankId> ids(members.ids().begin(), members.ids().end());
    const Members& others = members_of(group2);
    std::erase_if(ids, [&](RankId id) { return others.find(id) != MPI_UNDEFINED; });
    *newgroup = make_group(std::move(ids), group1);
  });
}

int group_incl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) noexcept {
  return on_group("MPI_Group_incl", group,
                  [&](const Members& members) { *newgroup = included(group, members, list_of(n, ranks)); });
}

int group_excl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) noexcept {
  return on_group("MPI_Group_excl", group,
                  [&](const Members& members) { *newgroup = excluded(group, members, list_of(n, ranks)); });
}

int group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) noexcept {
  return on_group("MPI_Group_range_incl", group,
                  [&](const Members& members) { *newgroup = included(group, members, list_of(members, n, ranges)); });
}

int group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) noexcept {
  return on_group("MPI_Group_range_excl", group,
                  [&](const Members& members) { *newgroup = excluded(group, members, list_of(members, n, ranges)); });
}

int group_free(MPI_Group* group) noexcept {
  MPI_Group handle = group != nullptr ? *group : MPI_GROUP_NULL;
  const int outcome = on_group("MPI_Group_free", handle, [&](const Members&) {
    if (handle != MPI_GROUP_EMPTY) delete object_of<Group>(handle);
  });
  if (group != nullptr && outcome == MPI_SUCCESS) *group = MPI_GROUP_NULL;
  return outcome;
}

}  // namespace brant::mpi::api
