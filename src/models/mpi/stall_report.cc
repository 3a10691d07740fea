#include "models/mpi/stall_report.h"

#include "base/log.h"
#include "base/seconds.h"
#include "models/mpi/checks/checks.h"
#include "models/mpi/dynamic/connections.h"
#include "models/mpi/parting.h"
#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

using RequestList = IntrusiveList<Request, &Request::hook>;

void report(const RankState& rank, std::chrono::nanoseconds idle) noexcept {
  std::size_t count = 0;
  const Request* oldest = rank.under_way.front();
  for (const Request* request = oldest; request != nullptr; request = RequestList::next(*request)) ++count;
  try {
    log::warn(
        "rank {} waits for MPI: nothing has moved for {:.1f} s. Under way: {}, of which the oldest is {}. Receives "
        "that "
        "have no message here: {}; messages that have no receive: {}",
        rank.id.value, in_seconds(idle), count, oldest->text(), rank.matching.posted(), rank.matching.kept());
  } catch (const std::exception&) {
    log::warn("rank {} waits for a message, and has no memory to say which", rank.id.value);
  }
}

/// Where calls are checked: in which call the rank is, and all that it waits for.
void report_call(const RankState& rank) noexcept {
  constexpr int kNamed = 8;
  try {
    const std::size_t slot = Process::slot_of(rank.id);
    const std::string& collective = checks()->collective_of(slot);
    std::string waits = collective.empty() ? "" : "until all members of its communicator have called " + collective;
    int count = 0;
    for (const Request* request = rank.under_way.front(); request != nullptr; request = RequestList::next(*request)) {
      if (++count > kNamed) continue;
      const char* const maker = checks()->census.maker_of(request);
      waits += fmt::format("{}{}{}{}", waits.empty() ? "for " : ", ", request->text(), maker != nullptr ? " by " : "",
                           maker != nullptr ? maker : "");
    }
    if (count > kNamed) waits += fmt::format(", and {} more", count - kNamed);
    log::warn("rank {} is in {}{}{}", rank.id.value, checks()->call_of(slot), waits.empty() ? "" : ", and waits ",
              waits);
  } catch (const std::exception&) {
    log::warn("rank {} waits, and there is no memory to say for what", rank.id.value);
  }
}

void report(const RankTeam& team) noexcept {
  try {
    if (const std::string what = team.awaited(); !what.empty()) log::warn("{}", what);
  } catch (const std::exception&) {
    log::warn("ranks wait in a collective, and there is no memory to say in which");
  }
}

}  // namespace

bool StallReport::stalled(std::chrono::nanoseconds idle, bool) noexcept {
  constexpr int kNamed = 8;  // of the ranks of a process, which may be a thousand
  if (process() == nullptr) return false;
  if (process()->parts()) {
    log::warn("the program has ended, and its process waits until {} others have: they may still want its messages",
              count_others(*process()));
    return true;
  }
  int waiting = 0;
  const RankTeam* last = nullptr;
  int told = 0;
  for (const auto& rank : process()->ranks()) {
    if (checks() != nullptr && ++told <= kNamed) report_call(*rank);
    if (!rank->under_way.empty() && ++waiting <= kNamed) report(*rank, idle);
    if (rank->waits_in == nullptr || (last != nullptr && last->shares(*rank->waits_in))) continue;
    last = rank->waits_in;
    report(*last);
  }
  const bool at_port = process()->has_connections() && !process()->connections().ports().awaited().empty();
  if (at_port) log::warn("this process waits {}", process()->connections().ports().awaited());
  if (waiting > kNamed) log::warn("{} more ranks of this process wait, too", waiting - kNamed);
  return told != 0 || waiting != 0 || last != nullptr || at_port;
}

}  // namespace brant::mpi
