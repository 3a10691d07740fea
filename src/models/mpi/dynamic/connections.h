#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/mpi/dynamic/contact.h"
#include "models/mpi/dynamic/ports.h"
#include "models/mpi/dynamic/spawned_jobs.h"
#include "models/mpi/envelope.h"
#include "models/mpi/members.h"

namespace brant {
struct Peer;
}

namespace brant::mpi {

struct Communicator;
class Process;

/// The processes of other jobs that this one knows. Each is joined to it (docs/decisions/0044) and has a rank here that
/// no other process understands; so jobs name processes to each other by contacts, and members of communicators are
/// these ranks. A process that was met stays joined until one of the two ends, however often MPI connects and
/// disconnects the two. One rank lives in this process.
class Connections {
 public:
  explicit Connections(Process& process) noexcept;
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /// What all jobs call a process.
  [[nodiscard]] std::uint64_t name_of(RankId id) const;
  /// Throws Error where nobody can join this process.
  [[nodiscard]] Contact own_contact();
  /// The ranks of processes by their contacts, of this job or another. Those that are not known yet are joined, by the
  /// side that `calls`; the other side waits for them. `label`: of the two groups, the same at all. Throws Error: where
  /// one has ended, or does not come in time.
  [[nodiscard]] std::vector<RankId> meet(std::span<const Contact> contacts, bool calls, std::uint64_t label);
  /// The same of one, whose process may do something else for long before it answers. No limit: until it ends.
  [[nodiscard]] RankId call(std::string_view address, std::optional<std::chrono::nanoseconds> limit);

  [[nodiscard]] Ports& ports() noexcept { return ports_; }
  [[nodiscard]] SpawnedJobs& spawned() noexcept { return spawned_; }
  /// A word of a process of another job, or of this one.
  void hear(Rank from, Word word, const DoorWord& body) noexcept;

  /// The program has a communicator with members of other jobs, which connects this process with them.
  void connect(const Communicator& communicator);
  /// In MPI_Comm_disconnect: waits until the members in other jobs are in it too. What they have sent is here by then.
  void disconnect(const Communicator& communicator);
  /// A process of another job is in MPI_Comm_disconnect of a communicator: nothing more comes from it there.
  [[nodiscard]] bool has_parted(const Communicator& communicator, RankId id) const noexcept;
  /// In MPI_Finalize: the same of all processes that this one is connected with.
  void part();

 private:
  class Watch;
  [[nodiscard]] std::optional<RankId> find_in_job(std::uint64_t name);
  [[nodiscard]] std::optional<RankId> find(std::uint64_t name);
  RankId know(std::uint64_t name, Rank rank);
  void watch(Peer& peer);
  void take_in_those_who_joined();
  void call_all(std::span<const Contact> contacts);
  void tell_that_met(std::span<const RankId> ids, std::uint64_t label);
  /// Whom a process of the other group has told that the two meet by this connection.
  [[nodiscard]] std::optional<RankId> find_met(const Contact& contact, std::uint64_t label);
  void await_all(std::span<const Contact> contacts, std::uint64_t label);
  void lose(Rank rank) noexcept;
  void await_parting(std::set<Rank> others, std::uint64_t what);

  Process& process_;
  Ports ports_;
  SpawnedJobs spawned_;
  std::unordered_map<std::uint64_t, RankId> of_job_;  ///< By name; made when it is first asked.
  std::unordered_map<std::uint64_t, Rank> joined_;    ///< The same of those of other jobs.
  std::set<std::uint64_t> calling_;                   ///< Names of those that a thread is joining.
  /// Who has told that two groups meet, by their label and its name: the connection by which it did.
  std::map<std::pair<std::uint64_t, std::uint64_t>, Rank> met_;
  std::map<Rank, std::unique_ptr<Watch>> watches_;
  std::map<Rank, int> uses_;  ///< In how many communicators a process of another job is connected with this one.
  /// Who has said that it parts, and from what: as DoorWord::port says it.
  std::set<std::pair<std::uint64_t, Rank>> parted_;
};

/// A member lives in another job.
[[nodiscard]] bool has_strangers(std::span<const RankId> ids) noexcept;
[[nodiscard]] bool has_strangers(const Communicator& communicator) noexcept;

}  // namespace brant::mpi
