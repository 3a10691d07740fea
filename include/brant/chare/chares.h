#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/ids.h"
#include "brant/core/future.h"
#include "brant/core/runtime.h"
#include "brant/core/task.h"

namespace brant {

template <typename... Args>
class Callback;

namespace detail {
class Core;
}

struct ChareOptions {
  /// Messages sent here and not delivered yet (to chares of this process, or held back because their receiver is
  /// behind), at most. Beyond, a call lets others run first; see `Chares`.
  std::size_t undelivered_max = 100'000;
  std::size_t undelivered_bytes_max = std::size_t{256} << 20;
  /// How long a call that is held back waits before it throws limit_reached.
  std::chrono::milliseconds held_back_max{30'000};
  /// When nothing can run any more on any rank for so long and `main` still waits, the job ends with an error that says
  /// who waits for what (see `Chares`, deadlock). 0: it waits for ever.
  std::chrono::milliseconds deadlock_after{1000};
  /// Asked when all is still: true says that the program has something to do that is in no message and no entry, such
  /// as tasks of its own that can go on. Then there is neither quiescence nor a deadlock. Called from within
  /// `progress`.
  std::function<bool()> has_other_work = {};
  /// False: `connect` must follow, on every rank. For tests and embedders that make several ranks in one thread.
  bool connect = true;
};

/// What a process's scheduler has done.
struct ChareCounts {
  std::uint64_t calls_sent = 0;  ///< Entry invocations asked for here, one per process for a broadcast.
  std::uint64_t calls_run = 0;   ///< Entry invocations run here.
  std::uint64_t held_back = 0;   ///< Calls that had to let others run first.
  std::size_t waiting = 0;       ///< Messages in this process's queue.
  std::size_t elements = 0;      ///< Chares alive in this process.
  std::size_t data_coming = 0;   ///< Calls here whose data arguments are under way.
};

/// The chares of one process, and the scheduler that runs them. Every process makes one, from the same program:
///
///     brant::Task<void> hello(brant::Chares& chares) {
///       auto ring = brant::create_array<Ring>(chares, {8}, brant::Placement::round_robin());
///       std::printf("%d\n", co_await ring[0].ask<&Ring::pass>(0));
///     }
///     int main() {
///       brant::Runtime runtime;
///       brant::Chares chares(runtime);
///       return chares.run(hello(chares));
///     }
///
/// One process is one PE: one worker, one thread, one queue. Entry methods run from the queue, one after another, never
/// inside a call and never inside the network.
///
/// Order: calls of one sender to one chare run in the order sent if their priorities are equal; so do the broadcasts of
/// one sender, and its calls of one section. Two things go other ways, and are *not* ordered with the rest:
///
/// - A call with data arguments (`device`, `no_copy`) runs when its data has landed. A later call without data, or with
///   less, can overtake it. What must come after it: `co_await` the first call (`ask`) before the second is made, or
///   let the receiver choose with `when<&Block::halo>(step)`.
/// - A broadcast, or a call of a section, goes by other ranks: it and a call of one element may overtake each other.
///
/// Bounds: to each peer a window of 16 MiB travels ahead of what it has run. A call beyond that is kept here; when
/// `undelivered_max` messages wait here, the call makes progress and runs entries of *other* chares (never of one whose
/// method is on the stack) until there is room. When nothing of that can help, it throws limit_reached.
///
/// Errors: an exception that leaves an entry travels to the caller's future; without one it ends the job: it is
/// reported once, on the rank where it happened, with chare, index and method, and `run` returns 1 everywhere.
///
/// Lost ranks: a chare program cannot outlive one, since its chares are gone. `run` returns 1 on all ranks that are
/// left, and the log names the rank that was lost, also with `brant run --keep-going`. A program that shall go on is
/// written with channels, whose operations end with peer_lost and leave the rest as it is.
///
/// Deadlock: when every rank is idle, no message is anywhere, no timer or device event is pending, no channel has
/// anything on its way to a receive, and `main` has not ended, nothing can ever happen: after `deadlock_after` (twice
/// that where messages of channels lie unread) the job ends with an error as above, which lists (bounded) the
/// coroutines, whens, futures, reductions and channels that wait, with chare, index, rank and since when. A program
/// that waits for something else (another thread that will call `Worker::post`) switches this off.
class BRANT_API Chares {
 public:
  /// Collective. Throws Error: version_mismatch if another rank runs another binary, invalid_argument if two classes
  /// have one name, or if this runtime has a Chares already: one after another is allowed, two at once are not.
  explicit Chares(Runtime& runtime, const ChareOptions& options = {});
  /// Destroys the chares of this process. What a destructor of one sends to others once the program has ended is
  /// dropped. If the program has not ended, since `run` was never called here, it ends with an error on all ranks.
  ~Chares();
  Chares(const Chares&) = delete;
  Chares& operator=(const Chares&) = delete;

  /// Compares programs with all ranks. Done by the constructor unless `ChareOptions::connect` is false.
  void connect();

  /// Starts `main` on rank 0 (the others drop it unstarted) and runs messages until the program ends: when `main` ends,
  /// or when somebody calls `exit`. Returns the exit code on all ranks: what `main` returned (0 for Task<void>), the
  /// argument of `exit`, or 1 after an error (which is in the log, and in `failure()`).
  ///
  /// Ending with code 0 while entry invocations are under way is an error: await their replies first.
  ///
  /// Throws invalid_argument where this program runs already: in an entry method, in `main`, or after `start`. Of a
  /// program that has ended it returns the exit code, and `main` is dropped.
  int run(Task<int> main);
  int run(Task<void> main);

  /// Ends the program, from any rank; returns at once. The first call decides.
  void exit(int code = 0);
  /// Awaited by a `main` that leaves the ending to `exit`: never ready.
  Future<> until_exit();

  /// Ready when nothing is under way: no message in flight or in a queue on any rank, no entry running, no device data
  /// in flight, by channels neither. Calls that wait for a `when` or for an element that was never inserted, timers,
  /// coroutines and receives that wait are no obstacle; messages of channels that nobody receives are none either, but
  /// it takes `deadlock_after` to find that out. From any rank. Costs some messages per rank; while others work they
  /// are asked every millisecond at most.
  Future<> quiescence();
  /// The same, told to a callback once.
  void on_quiescence(const Callback<>& to);

  /// What libraries brought along that were opened (dlopen) since this object was made gets its numbers: chare classes,
  /// constructors, entry methods, placement functions, reducers. Ready when this process may call them; before, that
  /// throws invalid_argument. Every process does so for itself, in any order and at any time: numbers go by name.
  ///
  ///     dlopen("./plugin.so", RTLD_NOW | RTLD_NODELETE);  // on the worker's thread; never closed again
  ///     co_await chares.enroll_late();
  ///
  /// A message of another process that comes before its library was opened here waits, 4096 of them (16 MiB) at most;
  /// later ones of other entries may overtake it. One more, or a program in which nothing else happens any more, ends
  /// with an error that says so. A process that takes part in a reduction or calls a callback opens the library first.
  /// Costs one message to rank 0 and back; calls cost what they always do.
  Future<> enroll_late();

  /// For programs and tests that own their loop: `start`, then `progress` until `ended`. Throws as `run` does.
  void start(Task<int> main);
  void start(Task<void> main);
  /// One round of the network and of the queue. Returns the number of events; 0 when idle. Not from an entry.
  unsigned progress();
  /// Sleeps until there is something for `progress` to do, `until` holds, or so much time is over. Not from an entry.
  void wait(const std::function<bool()>& until, std::chrono::nanoseconds longest);
  /// For who sleeps elsewhere, on the descriptor of the worker: how long at most before the next `progress`; 0: not at
  /// all.
  [[nodiscard]] std::chrono::nanoseconds longest_sleep() const noexcept;
  [[nodiscard]] bool ended() const noexcept;
  [[nodiscard]] int exit_code() const noexcept;
  /// The text of the error that ended the job, on the rank where it happened; empty elsewhere.
  [[nodiscard]] const std::string& failure() const noexcept;

  [[nodiscard]] Runtime& runtime() noexcept { return runtime_; }
  [[nodiscard]] Rank rank() const noexcept { return runtime_.rank(); }
  [[nodiscard]] int size() const noexcept { return runtime_.size(); }
  [[nodiscard]] ChareCounts counts() const noexcept;

  /// For the templates of this folder.
  [[nodiscard]] detail::Core& core() noexcept { return *core_; }

 private:
  Runtime& runtime_;
  std::unique_ptr<detail::Core> core_;
};

}  // namespace brant
