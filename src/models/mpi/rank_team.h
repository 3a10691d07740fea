#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "brant/coll/team.h"
#include "models/mpi/members.h"

namespace brant::mpi {

class CallAgreement;
class RankState;
class SharedTeam;
struct SaidCall;

/// What the ranks of a communicator do together. Where each lives in a process of its own that is a team of processes;
/// else those of a process share a member of it.
class RankTeam {
 public:
  /// Closed.
  RankTeam() noexcept;
  /// Of these ranks, in this order, the calling one among them: all of them call it, and it waits for all. `context`:
  /// of their communicator. `label`: not 0 where they have just met: a number that no other team of them has; then they
  /// wait no longer for each other than at the start of a job. Throws Error.
  RankTeam(RankState& rank, std::span<const RankId> ids, std::uint32_t context, std::uint64_t label = 0);
  RankTeam(RankTeam&&) noexcept;
  RankTeam& operator=(RankTeam&&) noexcept;
  ~RankTeam();

  [[nodiscard]] bool is_open() const noexcept { return rank_ != nullptr; }
  [[nodiscard]] int size() const noexcept { return size_; }
  /// Of the calling one, in the order of the list.
  [[nodiscard]] int rank() const noexcept { return static_cast<int>(place_); }
  /// As those of Team. `said`: what to tell the others of it where calls are checked; null: the call of MPI that the
  /// rank is in.
  OpResult run(const Collective& call, const SaidCall* said = nullptr) noexcept;
  Status post(const Collective& call, brant::Op& op, const SaidCall* said = nullptr) noexcept;
  /// As `post`, once the members have agreed or where they need not.
  Status carry_out(const Collective& call, brant::Op& op) noexcept;
  [[nodiscard]] std::string fault() const;
  /// Of a call that ended so just now.
  [[nodiscard]] int error_class(Status status) const noexcept;
  /// For people: which call the ranks of this process are in, and who of them has not come. Empty where none share it.
  [[nodiscard]] std::string awaited() const;
  [[nodiscard]] bool shares(const RankTeam& other) const noexcept { return shared_ == other.shared_; }

 private:
  void form(RankState& rank, std::span<const RankId> ids, std::uint32_t context, std::uint64_t label);
  void form_agreement(std::span<const RankId> ids, std::uint32_t context, std::uint64_t label);

  RankState* rank_ = nullptr;
  int size_ = 0;
  unsigned place_ = 0;  ///< Of this rank.
  Team team_;
  std::shared_ptr<SharedTeam> shared_;
  std::unique_ptr<CallAgreement> agreement_;  ///< Null: calls are not checked.
};

}  // namespace brant::mpi
