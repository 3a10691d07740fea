#include "models/mpi/rank_team.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/log.h"
#include "models/mpi/call_error.h"
#include "models/mpi/checks/call_agreement.h"
#include "models/mpi/checks/checks.h"
#include "models/mpi/communicators.h"
#include "models/mpi/process.h"
#include "models/mpi/shared/shared_team.h"

namespace brant::mpi {

namespace {

bool some_share_a_process(std::span<const RankId> ids) {
  std::set<Rank> processes;
  return std::ranges::any_of(ids, [&](RankId id) { return !processes.insert(Process::process_of(id)).second; });
}

}  // namespace

RankTeam::RankTeam() noexcept = default;
RankTeam::RankTeam(RankTeam&&) noexcept = default;
RankTeam& RankTeam::operator=(RankTeam&&) noexcept = default;
RankTeam::~RankTeam() = default;

RankTeam::RankTeam(RankState& rank, std::span<const RankId> ids, std::uint32_t context, std::uint64_t label) {
  form(rank, ids, context, label);
  if (checks() != nullptr) [[unlikely]]
    form_agreement(ids, context, label);
}

void RankTeam::form(RankState& rank, std::span<const RankId> ids, std::uint32_t context, std::uint64_t label) {
  size_ = static_cast<int>(ids.size());
  place_ = static_cast<unsigned>(std::ranges::find(ids, rank.id) - ids.begin());
  if (rank.process.threads() != nullptr && some_share_a_process(ids)) {
    shared_ = rank.process.shared_teams().join(rank, ids, context);
  } else {
    std::vector<Rank> processes;
    processes.reserve(ids.size());
    for (const RankId id : ids) processes.push_back(Process::process_of(id));
    TeamOptions options = kTeamOptions;
    options.label = communicator_label(ids, context);
    if (label != 0) {
      options.label = label;
      options.forming_patience = rank.process.engine().options().boot_timeout;
    }
    team_ = Team(rank.process.runtime(), processes, options);
  }
  rank_ = &rank;
}

/// Members that do not check would wait for each other in another team than those that do. A collective that the former
/// do not call ends the team at all of them instead.
void RankTeam::form_agreement(std::span<const RankId> ids, std::uint32_t context, std::uint64_t label) {
  std::int32_t value = 1;
  const std::span place(&value, 1);
  run(allreduce(std::span<const std::int32_t>(place), place, ReduceOp::max))
      .or_throw("not all members of a communicator run with BRANT_MPI_CHECK: set it for all processes of the job");
  constexpr std::uint32_t kTelling = 1u << 30;  // of no context
  RankTeam telling;
  telling.form(*rank_, ids, context | kTelling, label != 0 ? ~label : 0);
  agreement_ = std::make_unique<CallAgreement>(*rank_, std::move(telling));
}

OpResult RankTeam::run(const Collective& call, const SaidCall* said) noexcept {
  if (agreement_ != nullptr) [[unlikely]] {
    const Status status = agreement_->settle(said != nullptr ? *said : SaidCall::current());
    if (status == Status::invalid_argument && said == nullptr) log::error("{}", agreement_->fault());
    if (status != Status::ok) return {status, 0};
  }
  if (rank_->waits_alone()) [[likely]]
    return team_.run(call);
  struct Ended {
    RankState& rank;
    bool over = false;
    OpResult result;
  };
  Ended ended{*rank_, false, {}};
  brant::Op op;
  op.delivered = {[](void* context, const OpResult& result) noexcept {
                    auto& self = *static_cast<Ended*>(context);
                    self.result = result;
                    self.over = true;
                    self.rank.note_end();
                  },
                  &ended};
  if (const Status status = carry_out(call, op); status != Status::in_progress) return {status, 0};
  rank_->waits_in = this;
  rank_->wait_for_end([&] { return ended.over; });
  rank_->waits_in = nullptr;
  return ended.result;
}

Status RankTeam::post(const Collective& call, brant::Op& op, const SaidCall* said) noexcept {
  if (agreement_ != nullptr) [[unlikely]]
    return agreement_->post(said != nullptr ? *said : SaidCall::current(), *this, call, op);
  return carry_out(call, op);
}

Status RankTeam::carry_out(const Collective& call, brant::Op& op) noexcept {
  return shared_ != nullptr ? shared_->post(place_, call, op) : team_.post(call, op);
}

std::string RankTeam::awaited() const { return shared_ != nullptr ? shared_->awaited() : std::string(); }

int RankTeam::error_class(Status status) const noexcept {
  const bool differ = status == Status::invalid_argument && agreement_ != nullptr && !agreement_->fault().empty();
  return differ ? agreement_->error_class() : error_class_of(status);
}

std::string RankTeam::fault() const {
  if (agreement_ != nullptr && !agreement_->fault().empty()) return agreement_->fault();
  return shared_ != nullptr ? shared_->fault() : team_.fault();
}

}  // namespace brant::mpi
