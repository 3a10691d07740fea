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
#include "brant/coll/way.h"
#include "brant/core/operation.h"
#include "brant/core/stream.h"

namespace brant {

class Runtime;
class TeamState;
namespace coll {
struct Prepared;
}

/// How a model that is built on teams speaks of them to its users. They hear of deaths by its own errors: the log does
/// not speak of those.
struct TeamWording {
  std::string_view team = "team";
  std::string_view after_death = "Make a team of the others by Team::shrink";  ///< What to do.
  std::string (*member)(Rank rank) = nullptr;                                  ///< Null: by number and rank.
};

/// In which order the elements of a sum are combined.
enum class SumOrder : std::uint8_t {
  of_ranks,  ///< ((0 + 1) + 2) + ...: the same bits in every layout of the team, by every algorithm and trigger.
  free,      ///< What is fastest: the same bits at all members, and not those of another layout.
};

/// The same at all members.
struct TeamOptions {
  /// A member that has not come to a call for so long, since this member has, ends it for all: timed_out, which names
  /// who did not come. The team is of no use afterwards.
  std::chrono::milliseconds patience{600'000};
  TeamWay way = TeamWay::automatic;
  /// The same patience while the team is made; of both, the shorter one counts.
  std::chrono::milliseconds forming_patience{60'000};
  /// Which team it is of those with the same list of members; 0: the next one. For members that make several at a time,
  /// in an order that is not the same at all of them. A label is used once for a list.
  std::uint64_t label = 0;
  const TeamWording* wording = nullptr;  ///< Null: that of teams. Stays as long as the team.
  /// Of `Team::enqueue`, as `way` is of the others.
  StreamWay stream_way = StreamWay::automatic;
  /// Frees sums, products, minima and maxima of f32 and f64. (Others always have the order of ranks: f16 and bf16 are
  /// rounded once, functions of the program need not be commutative. Integers have the same bits in any order.)
  SumOrder sum_order = SumOrder::of_ranks;
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

/// Ordered members, processes of the job or joined to it, that act together: they carry out what
/// `brant/coll/collectives.h` describes. Members alone take part in making one. One team has one order: its calls are
/// carried out one after another, in the order in which they are posted, which is the same at all members. Different
/// teams are independent of each other.
///
/// On one host data goes through memory that all members have mapped, or is read where it is (memory of
/// `Runtime::allocate`, from 32 KiB on); between hosts, by messages. Memory may be of any kind, and of different kinds
/// at different members. That of devices goes through pinned memory of the host; streams carry calls out on the device
/// itself (`enqueue`).
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

  /// Of these ranks, in this order, this process among them. All of them call it, with the same list and options (a
  /// process that has joined has another rank at each of them), and
  /// those that are in several teams make them in an order that leads to no circle. Waits for all. Throws Error:
  /// invalid_argument (a list without this process, or with a rank twice or outside the job), peer_lost, timed_out (a
  /// member did not come within the patience of forming), not_supported (a way that these members do not have). Cost:
  /// some messages among the members, and memory that they share: 128 KiB a member.
  Team(Runtime& runtime, std::span<const Rank> members, const TeamOptions& options = {});
  /// Of all processes of the job.
  static Team world(Runtime& runtime, const TeamOptions& options = {});
  /// A team for each colour, its members in the order of `key`, and of rank where keys are equal. A negative colour
  /// gets none: a closed Team. All members call it. Throws as the constructor, and the status of the calls it makes.
  [[nodiscard]] Team split(int color, int key) const;
  /// A team of the members on this process's host, in their order here: those whose memory can be mapped, and that
  /// share a machine's processors and its buses. They alone call it and are waited for, and it does not matter what
  /// became of this team. A host is a machine, or a container with shared memory of its own. What `way` forces for
  /// teams of several hosts is automatic then. Throws as the constructor.
  [[nodiscard]] Team local() const;
  /// A team of the members that live, in their order here. For teams that a death or a silence ended, or for any. All
  /// that live call it; a member that does not come within the patience of forming is left out like the dead.
  /// Throws peer_lost where another member dies meanwhile: call it again.
  [[nodiscard]] Team shrink() const;

  /// What is under way ends as canceled, for all members.
  void close() noexcept;
  /// Ends the team where this member cannot go on: what is under way ends as canceled, and so does the next call of
  /// each other member, where `fault` names this one. Does nothing to a team that has ended. Cost: a message to each
  /// member.
  void abandon() noexcept;
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
  /// rank outside the team, no such combination of type and op, memory that overlaps, was freed or is too small),
  /// wrong_kind, not_supported (a way is forced that does not carry out this call), no_memory (pinned memory for
  /// buffers of a device); these are this member's own, nothing has happened, and a right call may follow. Those that
  /// end the team: invalid_argument (members call different things), peer_lost, timed_out, no_memory, canceled,
  /// device_failed. Allocates nothing in steady state.
  ///
  /// Device memory must be ready: streams that write it are done. Costs a copy of what is given, and one of what is
  /// got, and pinned memory of their size, which is kept for later calls.
  OpResult run(const Collective& call) noexcept;
  /// Posts it. Only `op.delivered` applies: `in` is free, `out` is filled. Buffers stay in place until then, also where
  /// the operation is no longer observed: a collective cannot be withdrawn. Errors as of `run`, and limit_reached
  /// (262,144 calls of this process's teams are under way).
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

  /// Makes the team ready for `enqueue`; all members call it, and it waits for all. Does nothing a second time.
  /// not_supported, at all members alike, where one of them has no device with kernels, or one that does not map the
  /// others' memory, shares no memory with another, or is in one process with it, or where there are more than 8. The
  /// log says which member it was and why. Else errors as of `run`, and no_memory. Cost: 25 to 28 MB of device memory
  /// for each member, until the team is closed and the device has done its work; messages among the members.
  OpResult prepare_streams() noexcept;
  /// Has a stream of the runtime's device carry it out: one kernel of at most 64 blocks, behind what was queued there
  /// before, which agrees with those of the other members by itself. No CPU takes part, so the stream may be captured,
  /// and graphs be launched as often as wanted, mixed with calls that are queued one by one. Calls of streams have an
  /// order of their own, apart from those of `run` and `post`: the same at all members, and on the device one after the
  /// other (one stream, or streams tied by events).
  ///
  /// Buffers are of this device's memory, or pinned, and are in use until the stream has passed the call. Sums have the
  /// bits that the host's have (but for those of a NaN). Returns ok once it is queued. invalid_argument as of `run`, or
  /// not prepared, or no stream; wrong_kind: memory that kernels do not reach; not_supported: functions of the program,
  /// pairs of a value and a place, blocks of different sizes: wait for the stream, and `run` the call. Nothing has
  /// happened then. What ended the team, as of `run`: the log and `fault` say what.
  ///
  /// A kernel waits for the others no longer than the patience. Then, or if the team has ended meanwhile, it and all
  /// behind it give up: the stream goes on, and what `out` holds is undefined. So look at `fault` when the stream is
  /// done. A death is heard of by progress (`co_await stream_done(...)`); where the CPU sleeps in a synchronisation,
  /// the patience alone ends the wait. Close the team when its streams have passed its calls: those that have not are
  /// canceled.
  Status enqueue(const Collective& call, StreamHandle stream) noexcept;

  /// What ended the team, for people; empty as long as it is of use.
  [[nodiscard]] std::string fault() const;
  /// By which algorithm a call of this shape is carried out here: "lines", "slots", "slices", "reads" (shared memory;
  /// of buffers that can be mapped, else as if it were shorter), "hosts", "direct", "pairwise", "binomial",
  /// "dissemination" (messages), "alone"; empty for a call that would be refused.
  [[nodiscard]] std::string_view explain(const Collective& call) const noexcept;
  /// The same of `enqueue`: "kernel lines", "kernel slots", "kernel slices", "kernel alone".
  [[nodiscard]] std::string_view explain_on_stream(const Collective& call) const noexcept;
  /// The last 64 calls of `run` and `post`, the oldest first. `brant info --job` shows where each member is.
  [[nodiscard]] std::vector<TeamCall> journal() const;
  /// The last 32 calls of `enqueue`, likewise: `begun_ns` is when each was queued. When the stream has passed it,
  /// nobody is told: `status` stays in_progress.
  [[nodiscard]] std::vector<TeamCall> stream_journal() const;

 private:
  explicit Team(std::unique_ptr<TeamState> state) noexcept;

  std::unique_ptr<TeamState> state_;
};

}  // namespace brant
