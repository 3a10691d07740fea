#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "brant/coll/team.h"
#include "core/pollers.h"
#include "models/mpi/shared/placement.h"
#include "models/mpi/shared/shared_call.h"
#include "models/mpi/shared/shared_step.h"

namespace brant {
class Engine;
class Runtime;
class TeamTable;
}  // namespace brant

namespace brant::mpi {

/// The collectives of a communicator of whose ranks several share a process: those of a process act as one member of a
/// team of processes. One for each communicator and process; its team has no other use.
///
/// The k-th calls of all members belong together. When those that live here have all posted theirs, and the calls
/// before have ended here, the process combines or puts together what they give, carries that out as one call of the
/// team, or a few, and gives each member its part. Nothing here waits: work is done in the post of the member that
/// comes last, and in progress.
///
/// Members are combined in the order of their ranks, each element by itself: functions of the program need not commute,
/// and a sum has the same bits at all members and in every run of one layout. They are those of one rank per process
/// where all members together give 64 KiB at most; where all live in one process; where ranks do not rise from each
/// process to the next (but for scan and exscan of f16 and bf16); and for integers. Else floats differ as brackets do,
/// for each process combines its own members first.
///
/// A small call costs some 60 ns a member, and what the team's call costs. Where ranks do not rise from process to
/// process, reductions whose order matters move what all members give to whoever combines it, and graphs and alltoall
/// always go as one alltoallv among all processes.
///
/// Memory of devices goes through pinned memory of the host, which takes progress and no waiting.
///
/// Members that call different things, what ends the team of processes, and a lack of memory end it: all calls under
/// way here and all later ones return the same error, and `fault` says why. Of members here that is found where kind,
/// type, op, root, or sizes that all know are not the same, or two of them disagree on the block between them. Between
/// processes, what the calls of their team say is compared. Allocates nothing in steady state, but for calls of more
/// than some MiB.
///
/// Belongs to the worker's thread; goes before its runtime.
class SharedTeam final : private Poller {
 public:
  /// `process_of`: by rank of the communicator, which of the team's processes it lives in, by their order there; each
  /// has one at least. `own`: this process. `team`: of those processes; closed where there is one only. Throws Error:
  /// invalid_argument (processes that do not fit the team).
  SharedTeam(Runtime& runtime, std::vector<unsigned> process_of, unsigned own, Team team);
  SharedTeam(const SharedTeam&) = delete;
  SharedTeam& operator=(const SharedTeam&) = delete;
  ~SharedTeam() { close(); }

  /// Members.
  [[nodiscard]] int size() const noexcept { return static_cast<int>(placement_.members()); }
  /// By a member that lives here, `call` as from `Team::post`: `op.delivered` alone applies, buffers and lists stay in
  /// place until then, also where nobody observes the operation any more. in_progress, or an error of the arguments
  /// (this member's alone, nothing has happened: invalid_argument, wrong_kind, no_memory, limit_reached), or what ended
  /// it.
  Status post(unsigned member, const Collective& call, brant::Op& op) noexcept;
  /// A member that lives here has ended its program: calls that it has not come to end, for all.
  void leave(unsigned member) noexcept;
  /// What ended it, for people; empty as long as it is of use.
  [[nodiscard]] std::string fault() const;
  /// For reports: the call under way, and which members of this process have not come to it. Empty: nobody is awaited.
  [[nodiscard]] std::string awaited() const;
  /// What is under way ends as canceled, for all members of all processes. Later calls end so at once.
  void close() noexcept;

 private:
  static constexpr std::uint64_t kEndless = ~std::uint64_t{0};
  /// As many calls ahead of the slowest member here may another one be.
  static constexpr std::size_t kCallsAhead = std::size_t{1} << 16;

  Status admit(unsigned member, const Collective& call, coll::CallRecord& record) noexcept;
  /// The call that is the next one of a member; null: no memory, or too many.
  SharedCall* next_call_of(std::size_t index, Status& why) noexcept;
  /// Room for more calls under way. Throws bad_alloc, and all is as before.
  void grow();
  [[nodiscard]] SharedCall& call_of(std::uint64_t number) const noexcept {
    return *calls_[number & (calls_.size() - 1)];
  }
  [[nodiscard]] bool is_idle() const noexcept { return first_number_ == end_number_; }
  void join(SharedCall& call, std::size_t index, coll::CallRecord& record) noexcept;
  /// Carries on what can be carried on now.
  void drive() noexcept;
  Status carry_on(SharedCall& call) noexcept;
  Status exchange(SharedCall& call) noexcept;
  /// Brings the device memory of all parts to the host, or back. `step` is what does so for one.
  template <typename Step>
  Status move_all(const SharedCall& call, Step step) noexcept;
  void exchanged(const OpResult& result) noexcept;
  void end_first(Status status) noexcept;
  /// Says why, and ends all.
  void fail(Status status, std::string why) noexcept;
  /// The team of processes has said why.
  void fail_with_team(Status status) noexcept;
  void fail_by_words(const SharedCall& call) noexcept;
  void fail_without_who_left() noexcept;
  void end_all(Status status, std::string why) noexcept;
  unsigned poll() noexcept override;

  Engine& engine_;
  TeamTable& table_;
  const Placement placement_;
  Team team_;
  const std::string name_;
  brant::Op op_;  ///< Of the team's call.
  bool exchanging_ = false;
  std::vector<std::unique_ptr<SharedCall>> calls_;  ///< A ring, by number: under way, or to come.
  std::uint64_t first_number_ = 0;                  ///< Of the first that is under way.
  std::uint64_t end_number_ = 0;                    ///< Behind the last.
  std::vector<std::uint64_t> posted_;               ///< How many calls each member here has made.
  std::uint64_t last_number_ = kEndless;            ///< Behind the last call that somebody who has left has come to.
  unsigned who_left_ = 0;
  SharedRoom room_;
  std::string why_;
  Status ended_ = Status::ok;
  std::string fault_;
};

}  // namespace brant::mpi
