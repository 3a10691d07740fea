#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "brant/base/api.h"
#include "brant/base/ids.h"
#include "brant/coll/collectives.h"
#include "brant/core/operation.h"

namespace brant {

class Runtime;
class TeamState;
namespace coll {
struct Prepared;
}

/// Which way the bytes of a team's collectives go.
enum class TeamWay : std::uint8_t {
  automatic,  ///< Shared memory where all members are on one host and can map it, else messages.
  messages,   ///< Messages in any case.
};

/// The same at all members.
struct TeamOptions {
  /// A member that has not come to a call for so long, since this member has, ends it for all: timed_out, which names
  /// who did not come. The team is of no use afterwards.
  std::chrono::milliseconds patience{600'000};
  TeamWay way = TeamWay::automatic;
};

/// One of the last calls of a member, for reports.
struct TeamCall {
  std::uint64_t number = 0;  ///< The first of a team is 1.
  CollectiveKind kind = CollectiveKind::none;
  DataType type = DataType::bytes;
  ReduceOp op = ReduceOp::none;
  std::int32_t root = 0;
  std::uint64_t bytes = 0;  ///< Of one block, where it has blocks.
  Status status = Status::in_progress;
  std::int64_t begun_ns = 0;  ///< By a clock that is some milliseconds late; when it came to its turn.
  std::int64_t ended_ns = 0;
  std::string_view algorithm;  ///< "lines", "slots", "reads", "direct", ...: the one that it went by.
};

/// A call that a team has looked at and planned once, to be carried out often: `Team::prepare` makes it. It has copies
/// of the call's lists; buffers and a function of the program stay the caller's, at their places. It goes before its
/// team.
class BRANT_API PreparedCall {
 public:
  PreparedCall(PreparedCall&&) noexcept;
  PreparedCall& operator=(PreparedCall&&) noexcept;
  ~PreparedCall();

 private:
  friend class Team;
  explicit PreparedCall(std::unique_ptr<coll::Prepared> prepared) noexcept;

  std::unique_ptr<coll::Prepared> prepared_;
};

/// Ordered members, processes of the job, that act together: they carry out what `brant/coll/collectives.h` describes.
/// Members alone take part in making one. One team has one order: its calls are carried out one after another, in the
/// order in which they are posted, which is the same at all members. Different teams are independent of each other.
///
/// On one host data goes through memory that all members have mapped, or is read where it is (memory of
/// `Runtime::allocate`, from 32 KiB on); between hosts, by messages. Host memory of any origin; device memory is
/// refused (not_supported): copy it to the host first.
///
/// A member that dies, leaves, does not come within the patience, or calls something else than the others, ends the
/// team: the call under way and all later ones return the same error at all other members, `fault` says who it was and
/// what it did, and the log has it once. The process and its other teams go on; `shrink` makes a team of the survivors.
///
/// Belongs to the worker's thread; goes before its runtime.
class BRANT_API Team {
 public:
  Team() noexcept;
  Team(Team&&) noexcept;
  Team& operator=(Team&&) noexcept;
  ~Team();

  /// Of these ranks, in this order, this process among them. All of them call it, with the same list and options, and
  /// those that are in several teams make them in an order that leads to no circle. Waits for all. Throws Error:
  /// invalid_argument (a list without this process, or with a rank twice or outside the job), peer_lost, timed_out (a
  /// member did not come within the patience, a minute at most). Cost: some messages among the members, and memory that
  /// they share: 128 KiB a member.
  Team(Runtime& runtime, std::span<const Rank> members, const TeamOptions& options = {});
  /// Of all processes of the job.
  static Team world(Runtime& runtime, const TeamOptions& options = {});
  /// A team for each colour, its members in the order of `key`, and of rank where keys are equal. A negative colour
  /// gets none: a closed Team. All members call it. Throws as the constructor, and the status of the calls it makes.
  [[nodiscard]] Team split(int color, int key) const;
  /// A team of the members that live, in their order here. For teams that a death or a silence ended, or for any. All
  /// that live call it; a member that does not come within the patience (a minute at most) is left out like the dead.
  /// Throws peer_lost where another member dies meanwhile: call it again.
  [[nodiscard]] Team shrink() const;

  /// What is under way ends as canceled, for all members.
  void close() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return state_ != nullptr; }

  /// Of this process in the team.
  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  /// Which process of the job has a rank of the team.
  [[nodiscard]] Rank member(int rank) const noexcept;
  /// "0.3": the third team that rank 0 of the job is the lowest member of. The same at all members.
  [[nodiscard]] std::string name() const;

  /// Carries it out and waits, moving the network: the fastest way for what is small. It looks for the other members by
  /// itself for a while before it waits as `Runtime::wait` does, and makes progress now and then. Not within a
  /// completion. The outcome's `bytes` are those of `out`. Errors: invalid_argument (sizes that do not fit together, a
  /// rank outside the team, no such combination of type and op, memory that overlaps), wrong_kind and not_supported
  /// (device memory); these are this member's own, nothing has happened, and a right call may follow. Those that end
  /// the team: invalid_argument (members call different things), peer_lost, timed_out, no_memory, canceled. Allocates
  /// nothing in steady state.
  OpResult run(const Collective& call) noexcept;
  /// Posts it. Only `op.delivered` applies: `in` is free, `out` is filled. Buffers stay in place until then, also where
  /// the operation is no longer observed: a collective cannot be withdrawn. Errors as of `run`, and limit_reached (4096
  /// calls of this process's teams are under way).
  Status post(const Collective& call, Op& op) noexcept;
  /// The same as an object to await.
  Operation start(const Collective& call) noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post(call, op); });
  }

  /// Plans a call that is made often; nothing is said to the others. Throws Error: what `run` would return for it.
  [[nodiscard]] PreparedCall prepare(const Collective& call) const;
  /// As of the call that was prepared, which may be made by any of these ways at each member. One of another team:
  /// invalid_argument.
  OpResult run(const PreparedCall& call) noexcept;
  Status post(const PreparedCall& call, Op& op) noexcept;
  Operation start(const PreparedCall& call) noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post(call, op); });
  }

  /// What ended the team, for people; empty as long as it is of use.
  [[nodiscard]] std::string fault() const;
  /// By which algorithm a call of this shape is carried out here: "lines", "slots", "slices", "reads" (shared memory;
  /// of buffers that can be mapped, else as if it were shorter), "hosts", "direct", "pairwise", "binomial",
  /// "dissemination" (messages), "alone"; empty for a call that would be refused.
  [[nodiscard]] std::string_view explain(const Collective& call) const noexcept;
  /// The last 64 calls, the oldest first.
  [[nodiscard]] std::vector<TeamCall> journal() const;

 private:
  explicit Team(std::unique_ptr<TeamState> state) noexcept;

  std::unique_ptr<TeamState> state_;
};

}  // namespace brant
