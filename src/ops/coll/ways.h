#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "brant/coll/team.h"
#include "core/engine.h"
#include "ops/coll/call_record.h"
#include "ops/coll/fault.h"
#include "ops/coll/houses.h"
#include "ops/coll/mail.h"
#include "ops/coll/message_rounds.h"
#include "ops/coll/reading.h"
#include "ops/coll/turn_board.h"

namespace brant::coll {

/// The ways that the calls of a team go: a board where all share a host, boards of several hosts, and messages, which
/// are always there. Carries out one call at a time; what becomes of a fault is not its affair.
class Ways {
 public:
  Ways(Mail& mail, const Members& members) : mail_(mail), members_(members), messages_(mail, members) {}

  /// `peers`: by member; null: this process. Throws bad_alloc.
  void share_board(Engine& engine, std::byte* memory, std::span<Peer* const> peers);
  void share_boards(Houses houses, std::byte* memory, std::span<Peer* const> peers);

  /// The same at all members, as is the order of sums.
  void set_order(SumOrder order) noexcept { order_ = order; }
  void set_bands(const Bands& bands) noexcept { bands_ = bands; }

  [[nodiscard]] bool has_board() const noexcept { return board_.has_value(); }
  [[nodiscard]] bool has_boards_of_hosts() const noexcept { return houses_.has_value(); }

  /// A pure function of what all members know of the call; `way`: that is forced.
  [[nodiscard]] PlanQuery query(const Work& work, TeamWay way) const noexcept;

  /// The call has come to its turn.
  void begin(const CallRecord& call) noexcept;
  /// Does what can be done now, copies of device memory before and behind it included. ok: it has ended; in_progress;
  /// else `fault` says what ended it. The call's plan may change to another one.
  Status step(CallRecord& call, Fault& fault) noexcept;
  /// Changes whenever the call has moved.
  [[nodiscard]] std::uint64_t moved(const CallRecord& call) const noexcept;
  /// The first member that the call waits for.
  [[nodiscard]] unsigned awaited(const CallRecord& call) const noexcept;
  /// That one is on another host, whose members know better whom they wait for.
  [[nodiscard]] bool awaits_a_host(const CallRecord& call) const noexcept {
    return is_of_hosts(call.plan) && houses_->awaits_a_host();
  }
  /// It goes on when others do something: members wake each other after each turn, and messages wake whom they reach.
  [[nodiscard]] bool lets_sleep(const CallRecord& call) const noexcept;
  /// The team has ended: who still reads here must not believe it.
  void abandon() noexcept;

 private:
  Status carry_on(CallRecord& call, Fault& fault) noexcept;
  Status step_on_board(CallRecord& call, Fault& fault) noexcept;
  void put(CallRecord& call) noexcept;
  /// False: not now, though all are there.
  bool take(CallRecord& call) noexcept;

  Mail& mail_;
  const Members& members_;
  Bands bands_;
  SumOrder order_ = SumOrder::of_ranks;
  std::vector<Peer*> others_;  ///< On the board.
  std::optional<TurnBoard> board_;
  std::optional<Reading> reading_;  ///< With the board.
  std::optional<HouseRounds> houses_;
  MessageRounds messages_;
};

}  // namespace brant::coll
