#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "brant/coll/team.h"
#include "brant/core/runtime.h"
#include "core/pollers.h"
#include "ops/coll/board_memory.h"
#include "ops/coll/call_record.h"
#include "ops/coll/device/team_streams.h"
#include "ops/coll/fault.h"
#include "ops/coll/journal.h"
#include "ops/coll/mail.h"
#include "ops/coll/measured_bands.h"
#include "ops/coll/prepared.h"
#include "ops/coll/shrinking.h"
#include "ops/coll/table.h"
#include "ops/coll/ways.h"

namespace brant {
namespace coll {
struct FormRecord;
}

/// What a Team stands for: its members, the calls under way, and what ended it. See there for the rules.
class TeamState final : private Poller {
 public:
  /// Throws as Team does. Nothing was agreed with the others yet.
  TeamState(Runtime& runtime, std::span<const Rank> members, const TeamOptions& options);
  TeamState(const TeamState&) = delete;
  TeamState& operator=(const TeamState&) = delete;
  ~TeamState();

  /// Meets the other members. Throws as Team does.
  void form();

  [[nodiscard]] Runtime& runtime() noexcept { return runtime_; }
  [[nodiscard]] const coll::Members& members() const noexcept { return members_; }
  [[nodiscard]] const std::vector<Rank>& ranks() const noexcept { return ranks_; }
  [[nodiscard]] const TeamOptions& options() const noexcept { return options_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::string describe_fault() const;
  [[nodiscard]] const coll::Journal& journal() const noexcept { return journal_; }

  /// `way`: of the options, or `automatic` for what the team itself has to say to all.
  OpResult run(const Collective& call, TeamWay way) noexcept;
  OpResult run(const coll::Prepared& call) noexcept;
  Status post(const Collective& call, Op& op) noexcept;
  Status post(const coll::Prepared& call, Op& op) noexcept;
  /// Throws as Team::prepare.
  std::unique_ptr<coll::Prepared> prepare(const Collective& call);
  [[nodiscard]] coll::TeamStreams& streams() noexcept { return streams_; }
  /// What `call` would be carried out by. False: it would be refused.
  bool plan(const Collective& call, coll::Plan& plan) const noexcept;
  /// Who lives, by member, as all that live agree. Throws as Team::shrink.
  std::vector<Rank> agree_on_survivors();
  /// Ends the team here, and says so to the others.
  void fail_by(coll::Fault::Why why, unsigned member) noexcept;

  // For the table.
  /// Takes the message over.
  void on_mail(am::Message& message) noexcept;
  void on_left(Rank rank) noexcept;
  void look_around() noexcept;
  bool say_what_it_waits_for() const noexcept;

 private:
  friend class coll::TeamStreams;
  using Calls = IntrusiveList<coll::CallRecord, &coll::CallRecord::hook>;
  struct Watch final : PeerOp {
    TeamState* team = nullptr;
    unsigned member = 0;
    Peer* peer = nullptr;
    std::int64_t left_ns = 0;     ///< When its program ended; 0: it has not.
    std::uint64_t last_call = 0;  ///< The last it is known to have come to.
  };

  /// A call, and the way that is forced for it.
  struct Request {
    const Collective& call;
    TeamWay way;
  };

  Status plan_call(const Request& request, coll::CallRecord& record, coll::Sides& sides) noexcept;
  Status admit(const Request& request, coll::CallRecord& record) noexcept;
  Status admit(const coll::Prepared& call, coll::CallRecord& record) noexcept;
  template <typename Call>
  OpResult carry_out(const Call& call) noexcept;
  template <typename Call>
  Status post_call(const Call& call, Op& op) noexcept;
  void begin(coll::CallRecord& record) noexcept;
  /// A message of a call that is under way here, or was, must be of that very call, also where nobody awaits it: a
  /// member that waits for somebody who never sends would not hear of it.
  void compare_words(unsigned member, const coll::MailHeader& header) noexcept;
  /// The same of all that wait here.
  void compare_all_words() noexcept;
  /// Does what can be done now. Returns how much it was.
  unsigned drive() noexcept;
  void end(coll::CallRecord& record, Status status) noexcept;
  /// Ends the team here, and at the others unless it was they who told of it.
  void fail(coll::Fault fault, bool told = false) noexcept;
  void say_fault() noexcept;
  void connect();
  void make_memory(coll::FormRecord& own);
  void map_memory(const std::vector<coll::FormRecord>& all);
  unsigned poll() noexcept override;
  [[nodiscard]] bool lets_sleep() const noexcept override;
  static void on_lost(PeerOp& op) noexcept;

  Runtime& runtime_;
  Engine& engine_;
  TeamTable& table_;
  const std::vector<Rank> ranks_;
  coll::Members members_;
  const TeamOptions options_;
  const TeamWording& wording_;
  std::chrono::milliseconds patience_;
  std::uint64_t key_ = 0;
  std::string name_;  ///< Among teams.
  std::vector<Watch> watches_;
  coll::BoardMemory memory_;  ///< Made by the lowest member of each host.
  coll::Mail mail_;
  coll::Ways ways_;
  coll::MeasuredBands bands_;  ///< As all members have agreed.
  coll::Shrinking shrinking_;
  coll::Journal journal_;
  coll::TeamStreams streams_{*this};
  Calls calls_;
  coll::Fault fault_;
  coll::Fault told_;       ///< By another member, of a call that this one has not come to.
  std::uint64_t met_ = 0;  ///< The last call in which all members were seen.
  bool fault_said_ = false;
  bool entered_ = false;
  unsigned runs_ = 0;
  const unsigned spins_;
};

}  // namespace brant
