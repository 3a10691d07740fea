#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/peer.h"
#include "ops/coll/fault.h"
#include "ops/coll/mail.h"
#include "ops/coll/plan.h"
#include "ops/coll/turn_board.h"
#include "ops/coll/work.h"

namespace brant::coll {

class BoardRounds;

/// Which members of a team share a host. Each house is led by its lowest member.
class Houses {
 public:
  /// `leaders`: of each member's house, by member, as all of them have said; `leaders[leader] == leader`.
  Houses(std::span<const unsigned> leaders, unsigned self);

  [[nodiscard]] const std::vector<std::vector<unsigned>>& all() const noexcept { return all_; }
  /// The members on this host, ascending.
  [[nodiscard]] const std::vector<unsigned>& own() const noexcept { return all_[own_]; }
  [[nodiscard]] std::size_t own_place() const noexcept { return own_; }
  /// Of this member in its house.
  [[nodiscard]] unsigned place() const noexcept { return place_; }
  [[nodiscard]] bool leads() const noexcept { return place_ == 0; }
  /// Somebody shares a host with somebody else, and not all do.
  [[nodiscard]] bool are_worth_it() const noexcept;

 private:
  std::vector<std::vector<unsigned>> all_;
  std::size_t own_ = 0;
  unsigned place_ = 0;
};

/// Small calls of a team of several hosts: what members show on the board of their host goes from leader to leader, so
/// that all see what all show, as on one board. Two turns of the board: in the first one members show, in the second
/// one the leader shows what all have. Elements are combined by each member in the order of ranks, and so with the same
/// bits in every layout.
///
/// Of partials, leaders combine what their hosts give, exchange that, and show the combination of all: a piece of the
/// vector in each round.
class HouseRounds {
 public:
  /// `peers`: by member of the team; null: this process.
  HouseRounds(Houses houses, std::byte* memory, Mail& mail, const Members& members, std::span<Peer* const> peers);

  void begin(std::uint64_t call) noexcept;
  /// As MessageRounds::step.
  Status step(const Work& work, const Plan& plan, Fault& fault) noexcept;

  /// Of hosts.
  [[nodiscard]] unsigned count() const noexcept { return static_cast<unsigned>(houses_.all().size()); }
  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }
  /// Whom it waits for, a member of the team.
  [[nodiscard]] unsigned awaited() const noexcept;
  /// That is another host, whose members know better whom they wait for.
  [[nodiscard]] bool awaits_a_host() const noexcept { return exchanges_; }
  /// It goes on when others do something, who wake this process.
  [[nodiscard]] bool lets_sleep() const noexcept;
  /// See TurnBoard::desert.
  void desert() noexcept { board_.desert(); }

 private:
  enum class Stage : std::uint8_t { show, share };

  /// The call under way, and what its plan makes of it.
  struct Call {
    const Work& work;
    const Plan& plan;
    std::size_t room = 0;  ///< Bytes that one member shows; of partials, those of this round, also of a host.

    [[nodiscard]] bool in_partials() const noexcept { return plan.algorithm == Algorithm::partials; }
  };

  [[nodiscard]] Call call_of(const Work& work, const Plan& plan) const noexcept;
  [[nodiscard]] bool shows(std::size_t house, const Work& work) const noexcept;
  [[nodiscard]] std::size_t message_bytes(std::size_t house, const Call& call) const noexcept;
  void collect(const Call& call) noexcept;
  void combine_house(const Call& call) noexcept;
  void combine_all(const Call& call) noexcept;
  void take(BoardRounds& rounds, const Call& call) noexcept;
  Status exchange(const Call& call, Fault& fault) noexcept;
  Status receive_from(std::size_t house, const Call& call, Fault& fault) noexcept;
  void publish(const Work& work) noexcept;

  const Houses houses_;
  TurnBoard board_;
  Mail& mail_;
  const Members& members_;
  std::vector<Peer*> beside_;      ///< The other members on this host.
  std::vector<std::byte> packed_;  ///< What those on this host show, one behind the other.
  Stage stage_ = Stage::show;
  bool published_ = false;
  bool exchanges_ = false;  ///< This leader waits for another one.
  bool blocked_ = false;    ///< For room to send.
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  std::uint64_t call_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t moved_ = 0;
};

}  // namespace brant::coll
