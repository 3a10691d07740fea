#include "models/mpi/shared_teams.h"

#include <algorithm>

#include "models/mpi/communicators.h"
#include "models/mpi/process.h"
#include "models/mpi/shared/shared_team.h"

namespace brant::mpi {

namespace {

int count_here(const RankState& rank, std::span<const RankId> ids) {
  const Rank here = Process::process_of(rank.id);
  return static_cast<int>(std::ranges::count_if(ids, [here](RankId id) { return Process::process_of(id) == here; }));
}

}  // namespace

std::shared_ptr<SharedTeam> SharedTeams::join(RankState& rank, std::span<const RankId> ids, std::uint32_t context) {
  const Key key{context, *std::ranges::min_element(ids)};
  const auto [place, first] = meetings_.try_emplace(key);
  Meeting& meeting = place->second;
  if (first) meeting.coming = count_here(rank, ids);
  ++meeting.inside;
  if (--meeting.coming == 0) {
    make(meeting, rank, ids, key);
  } else {
    rank.wait([&meeting] { return meeting.ended; });
  }
  const std::shared_ptr<SharedTeam> team = meeting.team;
  const std::exception_ptr error = meeting.error;
  if (--meeting.inside == 0) meetings_.erase(key);
  if (error != nullptr) std::rethrow_exception(error);
  return team;
}

/// The processes stand in the team in the order of their lowest members.
void SharedTeams::make(Meeting& meeting, RankState& rank, std::span<const RankId> ids, const Key& key) {
  try {
    std::vector<Rank> processes;
    for (const RankId id : ids) processes.push_back(Process::process_of(id));
    std::vector<Rank> team = processes;
    std::ranges::sort(team);
    team.erase(std::ranges::unique(team).begin(), team.end());
    std::vector<unsigned> house_of;
    house_of.reserve(processes.size());
    for (const Rank process : processes)
      house_of.push_back(static_cast<unsigned>(std::ranges::lower_bound(team, process) - team.begin()));
    const Rank here = Process::process_of(rank.id);
    const auto own = static_cast<unsigned>(std::ranges::lower_bound(team, here) - team.begin());
    TeamOptions options = kTeamOptions;
    options.label = communicator_label(ids, key.context);
    Runtime& runtime = rank.process.runtime();
    Team processes_team = team.size() > 1 ? Team(runtime, team, options) : Team();
    auto made = std::make_shared<SharedTeam>(runtime, std::move(house_of), own, std::move(processes_team));
    note(made, ids, here);
    meeting.team = std::move(made);
  } catch (...) {
    meeting.error = std::current_exception();
  }
  meeting.ended = true;
}

void SharedTeams::note(const std::shared_ptr<SharedTeam>& team, std::span<const RankId> ids, Rank here) {
  constexpr std::size_t kFew = 16;
  if (made_.size() > 2 * tidied_ + kFew) {
    std::erase_if(made_, [](const Made& each) { return each.team.expired(); });
    tidied_ = made_.size();
  }
  Made made{team, {}};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (Process::process_of(ids[i]) == here) made.here.emplace(ids[i], static_cast<unsigned>(i));
  }
  made_.push_back(std::move(made));
}

void SharedTeams::leave(RankId id) noexcept {
  for (const Made& each : made_) {
    const std::shared_ptr<SharedTeam> team = each.team.lock();
    const auto member = each.here.find(id);
    if (team != nullptr && member != each.here.end()) team->leave(member->second);
  }
}

}  // namespace brant::mpi
