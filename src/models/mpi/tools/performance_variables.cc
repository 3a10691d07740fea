#include "models/mpi/tools/performance_variables.h"

#include <utility>

#include <fmt/format.h>

#include "models/mpi/process.h"

namespace brant::mpi::tools {

namespace {

using RequestList = IntrusiveList<Request, &Request::hook>;

/// Of the processes of MPI that have ended here.
Counters g_kept;

std::uint64_t count_requests(const RankState& rank) noexcept {
  std::uint64_t count = 0;
  for (const Request* request = rank.under_way.front(); request != nullptr; request = RequestList::next(*request))
    ++count;
  return count;
}

void add_levels(std::vector<PerformanceVariable>& all) {
  const auto add = [&all](const char* name, const char* description, int variable_class,
                          std::function<std::uint64_t(const RankState&)> measure) {
    all.push_back(
        {name, description, MPI_T_VERBOSITY_USER_BASIC, variable_class, Subject::messages, {}, std::move(measure)});
  };
  add("brant_requests_under_way", "Operations of this rank that have begun and not ended.", MPI_T_PVAR_CLASS_LEVEL,
      &count_requests);
  add("brant_receives_posted", "Receives of this rank that wait for a message.", MPI_T_PVAR_CLASS_LEVEL,
      [](const RankState& rank) { return rank.matching.posted(); });
  add("brant_early_messages", "Messages for this rank that wait for their receives.", MPI_T_PVAR_CLASS_LEVEL,
      [](const RankState& rank) { return rank.matching.kept(); });
  add("brant_early_bytes", "Bytes of host memory that messages without a receive take at this rank.",
      MPI_T_PVAR_CLASS_LEVEL, [](const RankState& rank) { return rank.matching.kept_bytes(); });
  add("brant_ranks_here", "Ranks that live in this process.", MPI_T_PVAR_CLASS_SIZE,
      [](const RankState& rank) { return rank.process.ranks().size(); });
}

void add_counter(std::vector<PerformanceVariable>& all, std::string name, std::string description, int verbosity,
                 Subject subject, std::function<const Tally&(const Counters&)> tally) {
  all.push_back(
      {std::move(name), std::move(description), verbosity, MPI_T_PVAR_CLASS_COUNTER, subject, std::move(tally), {}});
}

void add_counters_of_path(std::vector<PerformanceVariable>& all, Path path) {
  struct Column {
    const char* name;
    const char* description;
    Tally PathTally::* tally;
  };
  constexpr Column kColumns[] = {
      {"sends", "Messages, puts and gets of this process that went over the path {}.", &PathTally::sends},
      {"bytes_sent", "Bytes of this process that went over the path {}.", &PathTally::bytes_sent},
      {"receives", "Messages that this process got over the path {}.", &PathTally::receives},
      {"bytes_received", "Bytes that this process got over the path {}.", &PathTally::bytes_received},
  };
  for (const Column& column : kColumns) {
    add_counter(
        all, fmt::format("brant_path_{}_{}", path_name(path), column.name),
        fmt::format(fmt::runtime(column.description), path_name(path)), MPI_T_VERBOSITY_TUNER_BASIC, Subject::paths,
        [path, tally = column.tally](const Counters& counters) -> const Tally& { return counters.path(path).*tally; });
  }
}

void add_counters_of_process(std::vector<PerformanceVariable>& all) {
  const auto add = [&all](const char* name, const char* description, int verbosity, Tally Counters::* tally) {
    add_counter(all, name, description, verbosity, Subject::process,
                [tally](const Counters& counters) -> const Tally& { return counters.*tally; });
  };
  const int user = MPI_T_VERBOSITY_USER_DETAIL, tuner = MPI_T_VERBOSITY_TUNER_DETAIL;
  add("brant_failures", "Operations and messages of this process that ended with an error.", user, &Counters::failures);
  add("brant_peers_lost", "Processes that this process lost.", user, &Counters::peers_lost);
  add("brant_sleeps", "How often this process slept while it waited.", tuner, &Counters::sleeps);
  add("brant_progress_calls", "How often this process looked for what has moved.", tuner, &Counters::progress_calls);
  add("brant_bad_records", "Records from elsewhere that no process of this job writes.", MPI_T_VERBOSITY_MPIDEV_BASIC,
      &Counters::bad_records);
}

std::vector<PerformanceVariable> make_performance_variables() {
  std::vector<PerformanceVariable> all;
  add_levels(all);
  for (int path = static_cast<int>(Path::automatic) + 1; path < kPathCount; ++path)
    add_counters_of_path(all, static_cast<Path>(path));
  add_counters_of_process(all);
  return all;
}

}  // namespace

std::uint64_t PerformanceVariable::now() const {
  Process* const running = process();
  if (!is_counter()) return running != nullptr ? measure(running->rank()) : 0;
  return tally(g_kept).read() + (running != nullptr ? tally(running->engine().counters()).read() : 0);
}

const std::vector<PerformanceVariable>& performance_variables() {
  static const auto& all = *new std::vector<PerformanceVariable>(make_performance_variables());
  return all;
}

void keep_counters(const Counters& ending) noexcept {
  for (std::size_t i = 0; i < ending.paths.size(); ++i) {
    g_kept.paths[i].sends.add(ending.paths[i].sends.read());
    g_kept.paths[i].bytes_sent.add(ending.paths[i].bytes_sent.read());
    g_kept.paths[i].receives.add(ending.paths[i].receives.read());
    g_kept.paths[i].bytes_received.add(ending.paths[i].bytes_received.read());
  }
  g_kept.failures.add(ending.failures.read());
  g_kept.peers_lost.add(ending.peers_lost.read());
  g_kept.progress_calls.add(ending.progress_calls.read());
  g_kept.sleeps.add(ending.sleeps.read());
  g_kept.bad_records.add(ending.bad_records.read());
}

}  // namespace brant::mpi::tools
