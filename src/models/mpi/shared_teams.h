#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "models/mpi/members.h"
#include "models/mpi/rank_placement.h"

namespace brant::mpi {

class RankState;
class SharedTeam;

/// Where the ranks of this process that make a communicator together find the team that they share.
class SharedTeams {
 public:
  /// By each of the members, which wait for all. `context`: of the communicator. Throws Error, at all members here.
  [[nodiscard]] std::shared_ptr<SharedTeam> join(RankState& rank, std::span<const RankId> ids, std::uint32_t context);
  /// A rank of this process has ended its program.
  void leave(RankId id) noexcept;

 private:
  /// No other communicator of a member has its context, so with its lowest member it names the communicator.
  struct Key {
    std::uint32_t context = 0;
    RankId lowest;
    auto operator<=>(const Key&) const noexcept = default;
  };
  struct Meeting {
    int coming = 0;  ///< Members here that have not come.
    int inside = 0;
    bool ended = false;
    std::exception_ptr error;
    std::shared_ptr<SharedTeam> team;
  };
  /// A team, and which of its members live here.
  struct Made {
    std::weak_ptr<SharedTeam> team;
    std::map<RankId, unsigned> here;
  };
  void make(Meeting& meeting, RankState& rank, std::span<const RankId> ids, const Key& key);
  void note(const std::shared_ptr<SharedTeam>& team, std::span<const RankId> ids, Rank here);

  std::map<Key, Meeting> meetings_;
  std::vector<Made> made_;
  std::size_t tidied_ = 0;  ///< How many were left when those that are gone were last looked for.
};

}  // namespace brant::mpi
