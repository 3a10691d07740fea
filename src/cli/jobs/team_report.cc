#include "cli/jobs/team_report.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::cli::jobs {
namespace {

using Json = nlohmann::ordered_json;

/// One team, as its members on this host have published it, by member.
struct Team {
  struct Member {
    const ProcessPage* process = nullptr;
    const TeamPage* page = nullptr;
  };
  std::vector<Member> members;

  [[nodiscard]] const TeamPage& first() const { return *members.front().page; }
  [[nodiscard]] const Member* member(unsigned number) const {
    const auto found = std::find_if(members.begin(), members.end(),
                                    [number](const Member& each) { return each.page->self == number; });
    return found == members.end() ? nullptr : &*found;
  }
};

std::vector<Team> teams_of(const Job& job) {
  std::vector<Team> teams;
  for (const ProcessPage& process : job.processes) {
    for (const TeamPage& page : process.teams) {
      auto team = std::find_if(teams.begin(), teams.end(), [&](const Team& each) {
        return each.first().key == page.key && each.first().name == page.name;
      });
      if (team == teams.end()) team = teams.insert(teams.end(), Team());
      team->members.push_back({&process, &page});
    }
  }
  for (Team& team : teams) {
    std::sort(team.members.begin(), team.members.end(),
              [](const Team::Member& left, const Team::Member& right) { return left.page->self < right.page->self; });
  }
  return teams;
}

double seconds(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<double>(std::max<std::int64_t>(0, to_ns - from_ns)) / 1e9;
}

bool is_under_way(const TeamPage& page) {
  return !page.calls.empty() && page.calls.back().status == Status::in_progress;
}

/// "member 1 (rank 3)"; of members on other hosts the rank is not known.
std::string who(const Team& team, unsigned number) {
  const Team::Member* member = team.member(number);
  return member == nullptr ? fmt::format("member {}", number)
                           : fmt::format("member {} (rank {})", number, member->process->rank);
}

std::string state_of(const Team& team, const TeamPage& page, std::int64_t now_ns) {
  if (page.calls.empty()) return "has called nothing";
  const SeenCall& last = page.calls.back();
  if (!is_under_way(page)) {
    const std::string how = last.status == Status::ok ? "ended" : fmt::format("ended as {}", status_name(last.status));
    return fmt::format("{} {:.1f} s ago", how, seconds(last.ended_ns, now_ns));
  }
  std::string state = fmt::format("under way for {:.1f} s", seconds(last.begun_ns, now_ns));
  if (page.awaits && *page.awaits != page.self) state += ", waits for " + who(team, *page.awaits);
  return state;
}

std::string member_line(const Team& team, const Team::Member& member, std::int64_t now_ns) {
  const TeamPage& page = *member.page;
  if (page.calls.empty())
    return fmt::format("{:>8} {:>5} {:>9}  {}\n", page.self, member.process->rank, 0, state_of(team, page, now_ns));
  const SeenCall& last = page.calls.back();
  return fmt::format("{:>8} {:>5} {:>9}  {} by {}: {}\n", page.self, member.process->rank, last.number, last.what,
                     last.algorithm, state_of(team, page, now_ns));
}

/// Those that have not come to the call that others are in.
std::string late_members(const Team& team) {
  std::uint64_t furthest = 0;
  for (const Team::Member& member : team.members) {
    if (is_under_way(*member.page)) furthest = std::max(furthest, member.page->calls.back().number);
  }
  std::string text;
  for (const Team::Member& member : team.members) {
    const std::uint64_t call = member.page->calls.empty() ? 0 : member.page->calls.back().number;
    if (call < furthest) text += fmt::format("  {} has not come to call {}\n", who(team, member.page->self), furthest);
  }
  return text;
}

std::string stream_lines(const Team& team, std::int64_t now_ns) {
  std::string text;
  for (const Team::Member& member : team.members) {
    const TeamPage& page = *member.page;
    if (!page.queued.empty()) {
      const SeenCall& last = page.queued.back();
      text += fmt::format("  {} has queued {} call{} on streams, the last one, {} by {}, {:.1f} s ago\n",
                          who(team, page.self), last.number, last.number == 1 ? "" : "s", last.what, last.algorithm,
                          seconds(last.begun_ns, now_ns));
    }
    if (page.kernel_call != 0)
      text += fmt::format("  {}: a kernel was last seen to wait in call {}, for {}\n", who(team, page.self),
                          page.kernel_call, who(team, page.kernel_awaits));
  }
  return text;
}

Json call_json(const SeenCall& call, std::int64_t now_ns, bool of_streams) {
  Json json = {{"call", call.number},
               {"what", call.what},
               {"algorithm", call.algorithm},
               {of_streams ? "queued_s_ago" : "begun_s_ago", seconds(call.begun_ns, now_ns)}};
  if (of_streams) return json;
  json["status"] = status_name(call.status);
  if (call.ended_ns != 0) json["ended_s_ago"] = seconds(call.ended_ns, now_ns);
  return json;
}

Json member_json(const Team::Member& member, std::int64_t now_ns) {
  const TeamPage& page = *member.page;
  Json calls = Json::array(), queued = Json::array();
  for (const SeenCall& call : page.calls) calls.push_back(call_json(call, now_ns, false));
  for (const SeenCall& call : page.queued) queued.push_back(call_json(call, now_ns, true));
  Json json = {{"member", page.self}, {"rank", member.process->rank}, {"calls", calls}};
  if (is_under_way(page) && page.awaits) json["awaits"] = *page.awaits;
  if (page.fault != Status::ok) json["ended_as"] = status_name(page.fault);
  if (!page.queued.empty()) json["queued"] = queued;
  if (page.kernel_call != 0) json["kernel_waited"] = {{"call", page.kernel_call}, {"for", page.kernel_awaits}};
  return json;
}

}  // namespace

std::string teams_text(const Job& job, std::int64_t now_ns) {
  std::string text;
  for (const Team& team : teams_of(job)) {
    text += fmt::format(
        "team {} of {} member{}{}\n", team.first().name, team.first().members, team.first().members == 1 ? "" : "s",
        team.first().fault == Status::ok ? "" : fmt::format(", which has ended: {}", status_text(team.first().fault)));
    text += fmt::format("{:>8} {:>5} {:>9}\n", "member", "rank", "last call");
    for (const Team::Member& member : team.members) text += member_line(team, member, now_ns);
    text += late_members(team) + stream_lines(team, now_ns);
  }
  return text;
}

Json teams_json(const Job& job, std::int64_t now_ns) {
  Json teams = Json::array();
  for (const Team& team : teams_of(job)) {
    Json members = Json::array();
    for (const Team::Member& member : team.members) members.push_back(member_json(member, now_ns));
    teams.push_back({{"team", team.first().name}, {"size", team.first().members}, {"members", members}});
  }
  return teams;
}

}  // namespace brant::cli::jobs
