#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "brant/core/runtime.h"
#include "models/mpi/allocated_memory.h"
#include "models/mpi/attributes.h"
#include "models/mpi/rank_placement.h"
#include "models/mpi/rank_state.h"
#include "models/mpi/rank_threads.h"
#include "models/mpi/shared_teams.h"
#include "models/mpi/transport.h"

namespace brant::mpi {

class Checks;
class Connections;
class WindowMessenger;

/// What MPI has in this process: the runtime, and the ranks that live here. The first MPI_Init or MPI_Session_init
/// makes it, together with those of all other processes, and it stays until the process exits, since a session may be
/// opened again at any time. All that asks which process a rank lives in asks here.
class Process {
 public:
  /// `threads`: of the ranks; null where there is one. Throws Error.
  explicit Process(RankThreads* threads);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] Runtime& runtime() noexcept { return runtime_; }
  [[nodiscard]] Engine& engine() noexcept { return runtime_.worker().engine(); }
  [[nodiscard]] Transport& transport() noexcept { return transport_; }
  /// Made by the first window.
  [[nodiscard]] WindowMessenger& windows();
  /// With processes of other jobs; made when they are first asked for. Throws MPI_ERR_UNSUPPORTED_OPERATION where
  /// several ranks live in this process.
  [[nodiscard]] Connections& connections();
  [[nodiscard]] bool has_connections() const noexcept { return connections_ != nullptr; }
  /// A word about connections.
  void hear(Rank from, Word word, const DoorWord& body) noexcept;
  [[nodiscard]] KeyValues& key_values() noexcept { return key_values_; }
  [[nodiscard]] AllocatedMemory& allocated() noexcept { return allocated_; }
  /// The rank that runs.
  [[nodiscard]] RankState& rank() noexcept {
    return *ranks_[threads_ == nullptr ? 0 : static_cast<std::size_t>(threads_->caller())];
  }
  [[nodiscard]] std::span<const std::unique_ptr<RankState>> ranks() const noexcept { return ranks_; }
  /// Null where one rank lives here.
  [[nodiscard]] RankThreads* threads() const noexcept { return threads_; }
  /// The teams of communicators some of whose ranks share a process.
  [[nodiscard]] SharedTeams& shared_teams() noexcept { return shared_teams_; }
  /// A rank that lives here may call MPI.
  [[nodiscard]] bool is_open() const noexcept;
  /// False in a child that was forked.
  [[nodiscard]] bool is_own() const noexcept;
  void note_session() noexcept { had_sessions_ = true; }
  /// Before it goes, when no rank calls MPI any more. Only where there were sessions it waits for the others.
  void part() noexcept;
  [[nodiscard]] bool parts() const noexcept { return parts_; }

  /// The same in all processes of this host, and different on others.
  [[nodiscard]] static std::uint64_t host_number();

  [[nodiscard]] static const RankPlacement& placement() noexcept { return g_placement; }
  [[nodiscard]] static Rank process_of(RankId id) noexcept { return g_placement.process_of(id); }
  /// The number of a rank among those of its process.
  [[nodiscard]] static std::uint16_t slot_of(RankId id) noexcept { return g_placement.slot_of(id); }
  /// Null: no such rank lives here.
  [[nodiscard]] RankState* rank_at(std::uint64_t slot) noexcept {
    return slot < ranks_.size() ? ranks_[static_cast<std::size_t>(slot)].get() : nullptr;
  }

 private:
  static RankPlacement g_placement;

  Runtime runtime_;
  RankThreads* const threads_;
  bool had_sessions_ = false;
  bool parts_ = false;  ///< It waits in `part`.
  const int number_;    ///< By which the system knows this process.
  KeyValues key_values_;
  AllocatedMemory allocated_{runtime_};
  const std::unique_ptr<Checks> checks_;  ///< Null: calls are not checked.
  Transport transport_;
  SharedTeams shared_teams_;
  std::vector<std::unique_ptr<RankState>> ranks_;
  std::unique_ptr<WindowMessenger> windows_;
  std::unique_ptr<Connections> connections_;
};

namespace detail {
inline constinit Process* the_process = nullptr;
}

/// The number of the rank that calls among those of its process, before MPI_Init and after MPI_Finalize too.
[[nodiscard]] std::size_t calling_slot() noexcept;

// Each call of MPI asks these.
/// Null before a rank of this process has first used MPI.
[[nodiscard]] inline Process* process() noexcept { return detail::the_process; }
/// The rank that calls. Only where the process exists.
[[nodiscard]] inline RankState& current_rank() noexcept { return process()->rank(); }
/// The rank that calls may call MPI: its world is there, or a session is.
[[nodiscard]] inline bool is_open() noexcept { return process() != nullptr && current_rank().is_open(); }
/// Which level of threads a program gets that wishes for this one.
[[nodiscard]] int granted_thread_level(int wish) noexcept;
/// Of the rank that calls, as MPI_Init and MPI_Session_init do. The first of a process makes the process, which waits
/// for all others of the job. Throw Error.
void start_world(int thread_level);
[[nodiscard]] Session& start_session(ErrorHandler& handler, int thread_level);
/// As MPI_Finalize and MPI_Session_finalize do, when nothing is under way any more.
void end_world() noexcept;
void end_session(const Session& session) noexcept;

/// Ends the job from here, with a line on standard error.
[[noreturn]] void end_job(int code, const std::string& text) noexcept;

}  // namespace brant::mpi
