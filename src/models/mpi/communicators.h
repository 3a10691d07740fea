#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "models/mpi/communicator.h"
#include "models/mpi/context_agreement.h"
#include "models/mpi/rank_state.h"

namespace brant::mpi {

/// What messages about teams say to users of MPI.
extern const TeamWording kCommunicatorWording;
/// A rank may come to a collective, and to making a communicator, as late as it likes.
inline constexpr TeamOptions kTeamOptions{.patience = std::chrono::hours(24 * 365),
                                          .forming_patience = std::chrono::hours(24 * 365),
                                          .wording = &kCommunicatorWording};
/// Names a communicator among all that have the same members: a context is used once among them.
[[nodiscard]] std::uint64_t communicator_label(std::span<const RankId> ids, std::uint32_t context) noexcept;

/// A communicator of the rank `id` with a context that is known already. It waits for nobody: its team is made when it
/// is first asked for.
[[nodiscard]] std::unique_ptr<Communicator> make_communicator_later(RankId id, SharedMembers members,
                                                                    std::uint32_t context);
/// One with a new context, upon which the members agree. All of them call it, and nobody else; it waits for all.
[[nodiscard]] std::unique_ptr<Communicator> make_communicator(RankState& rank, SharedMembers members,
                                                              const Making& making);
/// The same between the group of this rank and another, which have no rank in common. The other group calls it with the
/// two exchanged. `label`: of those who have just met, see RankTeam.
[[nodiscard]] std::unique_ptr<Communicator> make_communicator(RankState& rank, SharedMembers members,
                                                              SharedMembers remote, const Making& making,
                                                              std::uint64_t label = 0);
/// One with the same groups.
[[nodiscard]] std::unique_ptr<Communicator> make_alike(RankState& rank, const Communicator& communicator);

/// The same without waiting for the others: its context, which one member hands out, is still to be set.
[[nodiscard]] std::unique_ptr<Communicator> make_alike_later(const Communicator& communicator);
/// A context that no communicator of this rank's, or of any other's, has; for a copy of this one.
[[nodiscard]] std::uint32_t hand_out_context(RankState& rank, const Communicator& original);

/// The handle that the program gets of a new communicator, whose errors go to this handler. `session`: the number of
/// the one that it derives from.
[[nodiscard]] MPI_Comm publish(std::unique_ptr<Communicator> made, ErrorHandler& handler,
                               std::uint64_t session) noexcept;
/// The same with the handler and the session of the communicator that it was made of.
[[nodiscard]] MPI_Comm publish(std::unique_ptr<Communicator> made, const Communicator& parent) noexcept;
/// Makes one of the ranks that a list names, which share a topology: the handle, and MPI_COMM_NULL for other ranks.
[[nodiscard]] MPI_Comm publish_part(const Communicator& parent, const std::vector<int>& ranks, Topology topology);

/// Of two groups, the one whose first member has the lower number is the first; with members in several jobs, the one
/// whose first member has the lower name.
[[nodiscard]] bool comes_first(const Members& members, const Members& remote);
/// The ranks of both groups one behind the other, in an order that both find.
[[nodiscard]] std::vector<RankId> in_team_order(const Members& members, const Members& remote);

/// Fills `values`, which has room for as many values as its team has members, with one of each.
void gather_from_all(Communicator& communicator, const void* own, void* values, std::size_t bytes);

/// One value of each member, by their ranks; of two groups, those of each.
template <typename T>
struct Told {
  std::vector<T> members;
  std::vector<T> remote;
};

template <typename T>
[[nodiscard]] Told<T> tell_all(Communicator& communicator, const T& own) {
  std::vector<T> values(static_cast<std::size_t>(communicator.team().size()));
  gather_from_all(communicator, &own, values.data(), sizeof own);
  if (!communicator.between_groups()) return {std::move(values), {}};
  const bool first = comes_first(*communicator.members, *communicator.remote);
  const auto middle = values.begin() + (first ? communicator.members : communicator.remote)->size();
  Told<T> told{{values.begin(), middle}, {middle, values.end()}};
  if (!first) std::swap(told.members, told.remote);
  return told;
}

}  // namespace brant::mpi
