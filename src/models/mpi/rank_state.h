#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "brant/base/intrusive_list.h"
#include "models/mpi/buffered_sends.h"
#include "models/mpi/communicator.h"
#include "models/mpi/context_numbers.h"
#include "models/mpi/files/rank_files.h"
#include "models/mpi/matching.h"
#include "models/mpi/request.h"
#include "models/mpi/sessions.h"
#include "models/mpi/tickets.h"

namespace brant::mpi {

class Process;
class RankTeam;
class RankThreads;

/// All that one rank of the job has and others have not, whatever process it lives in. Code of MPI reaches it by
/// `current_rank` alone, so that a process may hold several.
class RankState {
 public:
  RankState(Process& process_in, RankId id_in);
  ~RankState();
  RankState(const RankState&) = delete;
  RankState& operator=(const RankState&) = delete;

  /// What MPI_Init does, together at all ranks. Throws Error.
  void start_world(int level);
  void end_world() noexcept;
  /// Throws std::bad_alloc.
  [[nodiscard]] Session& open_session(ErrorHandler& handler, int level);
  void close_session(const Session& session) noexcept;
  /// The program may call MPI: its world is there, or a session is.
  [[nodiscard]] bool is_open() const noexcept { return uses_ != 0; }
  [[nodiscard]] bool has_world() const noexcept { return has_world_; }
  [[nodiscard]] const Sessions& sessions() const noexcept { return sessions_; }
  /// What MPI_Init granted, or the latest session where there is no world.
  [[nodiscard]] int thread_level() const noexcept { return thread_level_; }
  /// The calling thread is the one that called MPI_Init, or that opened the first session where there is no world.
  [[nodiscard]] bool is_main_thread() const noexcept { return std::this_thread::get_id() == main_thread_; }

  /// The one place where a rank waits: moves the network, and lets others run, until `done()` holds.
  template <typename Done>
  void wait(Done&& done) noexcept {
    if (done()) return;
    wait_until(
        [](void* held) noexcept { return static_cast<bool>((*static_cast<std::remove_reference_t<Done>*>(held))()); },
        std::addressof(done));
  }
  /// The same where only the end of a request or of a collective of this rank can make `done()` hold: it is asked then,
  /// so that a thousand ranks may wait beside each other.
  template <typename Done>
  void wait_for_end(Done&& done) noexcept {
    if (done()) return;
    wait_until_end(
        [](void* held) noexcept { return static_cast<bool>((*static_cast<std::remove_reference_t<Done>*>(held))()); },
        std::addressof(done));
  }
  /// While it waits nobody else calls MPI in this process: no other rank, and no other thread.
  [[nodiscard]] bool waits_alone() const noexcept {
    return threads_ == nullptr && thread_level_ != MPI_THREAD_MULTIPLE && !has_enqueue_thread;
  }
  /// A request or a collective has ended.
  void note_end() noexcept;
  /// The first of so many tags for partitions, which no other message of this rank has taken lately.
  std::int32_t take_partition_tags(int count) noexcept {
    if (next_partition_tag > kTagMax - count) next_partition_tag = 0;
    return std::exchange(next_partition_tag, next_partition_tag + count);
  }
  /// Moves the network once.
  void progress() noexcept;

  Process& process;
  const RankId id;
  Matching matching;
  Tickets tickets;
  BufferedSends buffered;
  RankFiles files;
  /// All ranks, and this one alone. The program has handles of them while `has_world`; brant uses them at any time.
  const std::unique_ptr<Communicator> world;
  const std::unique_ptr<Communicator> self;
  MPI_Comm parent = MPI_COMM_NULL;  ///< With those that have spawned this job, until it is disconnected.
  ContextNumbers contexts;
  bool has_enqueue_thread = false;  ///< A thread of brant calls MPI for it, too.
  std::uint64_t handed_out = 0;     ///< Contexts that it gave to copies of communicators.
  std::int32_t next_partition_tag = 0;
  std::uint64_t ended = 0;  ///< Requests that have ended so far: who looks at many looks when it changes.
  IntrusiveList<Request, &Request::hook> under_way;
  const RankTeam* waits_in = nullptr;  ///< In a collective with other ranks of this process.

 private:
  void wait_until(bool (*done)(void*) noexcept, void* context) noexcept;
  void wait_until_end(bool (*done)(void*) noexcept, void* context) noexcept;

  RankThreads* const threads_;  ///< Null where one rank lives in the process.
  const int slot_;
  Sessions sessions_;
  std::size_t uses_ = 0;  ///< Open sessions, and the world.
  bool has_world_ = false;
  int thread_level_ = MPI_THREAD_SINGLE;
  std::thread::id main_thread_;
};

}  // namespace brant::mpi
