#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "models/mpi/attributes.h"
#include "models/mpi/buffered_sends.h"
#include "models/mpi/call_error.h"
#include "models/mpi/error_handler.h"
#include "models/mpi/info.h"
#include "models/mpi/members.h"
#include "models/mpi/rank_team.h"
#include "models/mpi/topology.h"

namespace brant::mpi {

struct MpiStream;

/// What a handle of a communicator points to. It lives until it is freed and nothing is under way on it any more.
struct Communicator final : Object {
  /// Contexts that all members agree on are below `kHandedOut`, and those that one of them hands out are from there on,
  /// below `kContexts`. The bits above say what messages they are of: `kMakingContext`, PartitionedSetup's and
  /// `kOwnContext`.
  static constexpr std::uint32_t kHandedOut = 1u << 28;
  static constexpr std::uint32_t kContexts = 1u << 29;
  /// Those that a member hands out to members in several jobs, which are random: jobs share no numbering.
  static constexpr std::uint32_t kHandedToStrangers = kHandedOut + (1u << 27);
  static constexpr std::uint32_t kMeeting = kContexts - 1;  ///< Of no communicator: of what two roots say at a port.
  static constexpr std::uint32_t kMakingContext = 1u << 29;
  static constexpr std::uint32_t kOwnContext = 1u << 31;
  static constexpr ObjectKind kKind = ObjectKind::communicator;

  /// `remote_in`: null for a communicator of one group.
  Communicator(std::uint32_t context_in, SharedMembers members_in, SharedMembers remote_in, int rank_in,
               RankTeam team_in)
      : Object(kKind),
        context(context_in),
        members(std::move(members_in)),
        remote(std::move(remote_in)),
        rank(rank_in),
        handler(&error_handler_of(MPI_ERRORS_ARE_FATAL)),
        team_(std::move(team_in)) {}
  ~Communicator() { drop_handler(*handler); }

  [[nodiscard]] int size() const noexcept { return members->size(); }
  /// Whom ranks in calls name: the members, or those of the other group.
  [[nodiscard]] const Members& peers() const noexcept { return remote != nullptr ? *remote : *members; }
  [[nodiscard]] RankId id_of(int peer) const noexcept { return peers()[peer]; }
  /// This rank is the root that a call names.
  [[nodiscard]] bool is_root(int root) const noexcept { return root == (between_groups() ? int{MPI_ROOT} : rank); }
  [[nodiscard]] bool between_groups() const noexcept { return remote != nullptr; }
  /// For messages of brant itself on this communicator, which none of the program's receives matches.
  [[nodiscard]] std::uint32_t own_context() const noexcept { return context | kOwnContext; }
  /// For what they do together: the members in their order, or both groups as `in_team_order` has them. A copy by
  /// MPI_Comm_idup makes it when it is first asked for, which waits for all of them. Throws Error.
  [[nodiscard]] RankTeam& team() {
    if (!team_.is_open()) [[unlikely]]
      form_team();
    return team_;
  }
  void set_handler(ErrorHandler& next) noexcept {
    ++next.users;
    drop_handler(*std::exchange(handler, &next));
  }

  /// The same at all members; no other communicator of any of them has it. Set once.
  std::uint32_t context;
  const SharedMembers members;  ///< Of two groups: those of this rank's.
  const SharedMembers remote;   ///< The other group; null where there is one.
  const int rank;               ///< Of this rank among `members`.
  ErrorHandler* handler;
  Attributes attributes;
  std::string name;
  Info info;
  Topology topology;
  BufferedSends buffered;
  std::shared_ptr<MpiStream> stream;  ///< That carries out its enqueued calls; null: none.
  std::unique_ptr<CallError> late;    ///< Of an enqueued call, for the next call of the program to tell.
  std::uint64_t session = 0;          ///< The number of the session that it derives from; 0: of none.
  std::size_t users = 1;              ///< The program's handle, and what is under way.

 private:
  void form_team();

  RankTeam team_;
};

/// One user less.
inline void drop_communicator(Communicator& communicator) noexcept {
  if (--communicator.users == 0) delete &communicator;
}

}  // namespace brant::mpi
