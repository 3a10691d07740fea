#include "models/mpi/rank_team.h"

#include <algorithm>
#include <set>
#include <vector>

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

RankTeam::RankTeam(RankState& rank, std::span<const RankId> ids, std::uint32_t context, std::uint64_t label)
    : size_(static_cast<int>(ids.size())),
      place_(static_cast<unsigned>(std::ranges::find(ids, rank.id) - ids.begin())) {
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

OpResult RankTeam::run(const Collective& call) noexcept {
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
  if (const Status status = post(call, op); status != Status::in_progress) return {status, 0};
  rank_->waits_in = this;
  rank_->wait_for_end([&] { return ended.over; });
  rank_->waits_in = nullptr;
  return ended.result;
}

Status RankTeam::post(const Collective& call, brant::Op& op) noexcept {
  return shared_ != nullptr ? shared_->post(place_, call, op) : team_.post(call, op);
}

std::string RankTeam::awaited() const { return shared_ != nullptr ? shared_->awaited() : std::string(); }

std::string RankTeam::fault() const { return shared_ != nullptr ? shared_->fault() : team_.fault(); }

}  // namespace brant::mpi
