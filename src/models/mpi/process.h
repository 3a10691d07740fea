#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "brant/core/runtime.h"
#include "models/mpi/attributes.h"
#include "models/mpi/rank_placement.h"
#include "models/mpi/rank_state.h"
#include "models/mpi/rank_threads.h"
#include "models/mpi/shared_teams.h"
#include "models/mpi/transport.h"

namespace brant::mpi {

class WindowMessenger;

/// What MPI has in this process between MPI_Init and MPI_Finalize: the runtime, and the ranks that live here. All that
/// asks which process a rank lives in asks here.
class Process {
 public:
  /// `threads`: of the ranks; null where there is one.
  Process(int thread_level, RankThreads* threads);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] Runtime& runtime() noexcept { return runtime_; }
  [[nodiscard]] Engine& engine() noexcept { return runtime_.worker().engine(); }
  [[nodiscard]] Transport& transport() noexcept { return transport_; }
  /// Made by the first window.
  [[nodiscard]] WindowMessenger& windows();
  [[nodiscard]] KeyValues& key_values() noexcept { return key_values_; }
  /// The rank that runs.
  [[nodiscard]] RankState& rank() noexcept {
    return *ranks_[threads_ == nullptr ? 0 : static_cast<std::size_t>(threads_->current())];
  }
  [[nodiscard]] std::span<const std::unique_ptr<RankState>> ranks() const noexcept { return ranks_; }
  /// Null where one rank lives here.
  [[nodiscard]] RankThreads* threads() const noexcept { return threads_; }
  /// The teams of communicators some of whose ranks share a process.
  [[nodiscard]] SharedTeams& shared_teams() noexcept { return shared_teams_; }
  [[nodiscard]] int thread_level() const noexcept { return thread_level_; }
  /// The calling thread is the one that called MPI_Init.
  [[nodiscard]] bool is_main_thread() const noexcept { return std::this_thread::get_id() == main_thread_; }

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
  const int thread_level_;
  const std::thread::id main_thread_ = std::this_thread::get_id();
  KeyValues key_values_;
  Transport transport_;
  SharedTeams shared_teams_;
  std::vector<std::unique_ptr<RankState>> ranks_;
  std::unique_ptr<WindowMessenger> windows_;
};

/// Null before MPI_Init and after MPI_Finalize.
[[nodiscard]] Process* process() noexcept;
/// The number of the rank that calls among those of its process, before MPI_Init and after MPI_Finalize too.
[[nodiscard]] std::size_t calling_slot() noexcept;
/// Of the rank that calls: the first of a process starts the process. Throws Error.
void start_rank(int thread_level);
/// The last of a process ends it.
void end_rank() noexcept;
/// Where the rank that calls stands between MPI_Init and MPI_Finalize.
enum class Life : std::uint8_t { before, running, over };
[[nodiscard]] Life& life() noexcept;

/// Ends the job from here, with a line on standard error.
[[noreturn]] void end_job(int code, const std::string& text) noexcept;

}  // namespace brant::mpi
