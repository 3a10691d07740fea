#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "brant/coll/collectives.h"
#include "brant/core/op.h"
#include "models/mpi/checks/said_call.h"
#include "models/mpi/rank_team.h"

namespace brant::mpi {

/// Before the members of a communicator carry out a collective they tell each other what they call, by a team of its
/// own, so that what they tell always fits together. Where it is not the same, all of them hear of it, nothing is
/// carried out, and the communicator stays of use.
class CallAgreement {
 public:
  /// `team`: of the same members in the same order as that which carries out, for this alone.
  CallAgreement(RankState& rank, RankTeam team) noexcept : rank_(rank), team_(std::move(team)) {}
  CallAgreement(const CallAgreement&) = delete;
  CallAgreement& operator=(const CallAgreement&) = delete;

  /// Waits until all have told theirs, and until what was posted before has been. invalid_argument: they differ.
  Status settle(const SaidCall& own) noexcept;
  /// Posts a call to the team that carries out as soon as all have told theirs; as `RankTeam::post`.
  Status post(const SaidCall& own, RankTeam& carrying_out, const Collective& call, brant::Op& op) noexcept;

  /// How the members differed the last time, for people; empty: they did not.
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }
  /// The error class of that.
  [[nodiscard]] int error_class() const noexcept { return error_class_; }

 private:
  struct Posted;
  Status compare(std::span<const SaidCall> all) noexcept;

  RankState& rank_;
  RankTeam team_;
  std::size_t posted_ = 0;  ///< Under way.
  std::string fault_;
  int error_class_ = 0;
};

}  // namespace brant::mpi
