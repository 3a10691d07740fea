#pragma once

#include "brant/base/api.h"

namespace brant {
class Worker;
}

namespace brant::mpi {

/// The user-level threads of the ranks of this process, where several live in it. They all run on the thread that
/// called `RankScheduler::run`, one at a time, and none is ever interrupted: another one runs when this one waits or
/// yields.
class RankThreads {
 public:
  using Done = bool (*)(void* context) noexcept;

  RankThreads() noexcept = default;
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;
  virtual ~RankThreads() = default;

  /// How many ranks live here.
  [[nodiscard]] virtual int count() const noexcept = 0;
  /// The number among them of the one that runs.
  [[nodiscard]] virtual int current() const noexcept = 0;
  /// The calling rank stands still until `done(context)` holds, which is asked, on any stack, whenever something has
  /// moved. Others run meanwhile, and the network moves.
  virtual void wait(Done done, void* context) noexcept = 0;
  /// The same where `done` can hold only after a notice for this rank: it is asked then, and not in between.
  virtual void wait_for_notice(Done done, void* context) noexcept = 0;
  /// As `current`, for calls of MPI: ends the process where they come from another thread than the ranks'.
  [[nodiscard]] virtual int caller() const noexcept { return current(); }
  /// Something has ended that the rank with this number may wait for.
  virtual void notice(int slot) noexcept = 0;
  /// Memory whose bytes are elsewhere while another rank runs.
  [[nodiscard]] virtual bool moves(const void* address) const noexcept = 0;
  /// Lets the others run for a turn.
  virtual void yield() noexcept = 0;
  /// What moves the network from now on; null: nothing does.
  virtual void attach(Worker* worker) noexcept = 0;
};

/// Before MPI_Init, in a process with several ranks. `threads` outlives MPI.
BRANT_API void use_rank_threads(RankThreads& threads) noexcept;

/// Of a rank whose program has ended with this exit code, on its stack where it has one: that code, or 1 and a line on
/// standard error if it may still call MPI, since it has not called MPI_Finalize, or MPI_Session_finalize. Others would
/// wait for it without end.
[[nodiscard]] BRANT_API int checked_exit_code(int code) noexcept;

/// The program of the calling rank has ended well: what others of its process wait for, and it has not done, fails.
BRANT_API void note_rank_end() noexcept;

/// All ranks of this process have ended: what MPI has in it ends as well.
BRANT_API void end_ranks() noexcept;

}  // namespace brant::mpi
