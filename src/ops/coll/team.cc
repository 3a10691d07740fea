#include "brant/coll/team.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "brant/core/runtime.h"
#include "core/told_at_once.h"
#include "ops/coll/team_state.h"

namespace brant {
namespace {

std::vector<Rank> all_of_job(const Runtime& runtime) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < runtime.size(); ++rank) ranks.push_back(Rank{rank});
  return ranks;
}

/// For what is made of a team: it may have the same list of members.
TeamOptions without_label(TeamOptions options) noexcept {
  options.label = 0;
  return options;
}

}  // namespace

PreparedCall::PreparedCall(std::unique_ptr<coll::Prepared> prepared) noexcept : prepared_(std::move(prepared)) {}
PreparedCall::PreparedCall(PreparedCall&&) noexcept = default;
PreparedCall& PreparedCall::operator=(PreparedCall&&) noexcept = default;
PreparedCall::~PreparedCall() = default;

Team::Team() noexcept = default;
Team::Team(Team&&) noexcept = default;
Team& Team::operator=(Team&&) noexcept = default;
Team::~Team() = default;

Team::Team(Runtime& runtime, std::span<const Rank> members, const TeamOptions& options)
    : state_(std::make_unique<TeamState>(runtime, members, options)) {
  state_->form();
}

Team Team::world(Runtime& runtime, const TeamOptions& options) { return {runtime, all_of_job(runtime), options}; }

Team Team::split(int color, int key) const {
  struct Choice {
    std::int32_t color, key;
  };
  const Choice own{color, key};
  std::vector<Choice> all(state_->ranks().size());
  state_
      ->run(allgather(ConstBuffer(&own, sizeof(own), MemoryKind::host),
                      Buffer(all.data(), all.size() * sizeof(Choice), MemoryKind::host)),
            TeamWay::automatic)
      .or_throw(fmt::format("team {} was not split", state_->name()));
  if (color < 0) return {};
  std::vector<std::size_t> places(all.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::erase_if(places, [&](std::size_t place) { return all[place].color != color; });
  std::stable_sort(places.begin(), places.end(), [&](auto a, auto b) { return all[a].key < all[b].key; });
  std::vector<Rank> members;
  for (const std::size_t place : places) members.push_back(state_->ranks()[place]);
  return {state_->runtime(), members, without_label(state_->options())};
}

Team Team::local() const {
  Peers& peers = state_->runtime().worker().engine().peers();
  std::vector<Rank> members = state_->ranks();
  std::erase_if(members, [&](Rank rank) { return !peers.find(rank.value)->same_host; });
  TeamOptions options = without_label(state_->options());
  if (options.way == TeamWay::hosts) options.way = TeamWay::automatic;
  return {state_->runtime(), members, options};
}

Team Team::shrink() const {
  return {state_->runtime(), state_->agree_on_survivors(), without_label(state_->options())};
}

void Team::close() noexcept { state_.reset(); }
void Team::abandon() noexcept { state_->fail_by(coll::Fault::Why::closed, state_->members().self); }

int Team::rank() const noexcept { return static_cast<int>(state_->members().self); }
int Team::size() const noexcept { return static_cast<int>(state_->members().count); }
Rank Team::member(int rank) const noexcept { return state_->ranks()[static_cast<std::size_t>(rank)]; }
std::string Team::name() const { return state_->name(); }

OpResult Team::run(const Collective& call) noexcept { return state_->run(call, state_->options().way); }
Status Team::post(const Collective& call, Op& op) noexcept { return told_at_once(state_->post(call, op), op); }

PreparedCall Team::prepare(const Collective& call) const { return PreparedCall(state_->prepare(call)); }
OpResult Team::run(const PreparedCall& call) noexcept { return state_->run(*call.prepared_); }
Status Team::post(const PreparedCall& call, Op& op) noexcept {
  return told_at_once(state_->post(*call.prepared_, op), op);
}

std::string Team::fault() const {
  state_->streams().look();
  return state_->describe_fault();
}

OpResult Team::prepare_streams() noexcept { return state_->streams().prepare(); }
Status Team::enqueue(const Collective& call, StreamHandle stream) noexcept {
  return state_->streams().enqueue(call, stream);
}
std::string_view Team::explain_on_stream(const Collective& call) const noexcept { return state_->streams().plan(call); }

std::string_view Team::explain(const Collective& call) const noexcept {
  coll::Plan plan;
  return state_->plan(call, plan) ? coll::algorithm_name(plan.algorithm) : std::string_view();
}

std::vector<TeamCall> Team::journal() const { return state_->journal().calls(); }
std::vector<TeamCall> Team::stream_journal() const { return state_->journal().stream_calls(); }

}  // namespace brant
