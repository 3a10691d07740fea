#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "brant/base/api.h"
#include "brant/base/clock.h"
#include "brant/base/status.h"

namespace brant {

class Engine;
struct Timer;

/// The progress engine of one thread. Everything that completes, completes inside `progress` of the thread that owns
/// the worker. All calls belong to that thread, except `post`.
class BRANT_API Worker {
 public:
  static constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();

  explicit Worker(Engine& engine) noexcept : engine_(engine) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Moves the network, then fires the completions that are due (a bounded number). Returns how many events it saw, 0
  /// when idle; a timer is none, so that a task which yields or sleeps in a loop keeps nobody busy who waits for
  /// stillness. Costs some ten nanoseconds when idle. Not to be called from a completion.
  unsigned progress() noexcept;

  /// Calls progress until `done()` holds. Waits adaptively: spins a little, then sleeps until the network wakes it, so
  /// that more processes than cores still run well. Returns ok, or timed_out.
  template <typename Predicate>
  Status wait_until(Predicate&& done, std::chrono::nanoseconds timeout = kForever) noexcept {
    using Held = std::remove_reference_t<Predicate>;
    return wait([](void* self) noexcept { return static_cast<bool>((*static_cast<Held*>(self))()); },
                std::addressof(done), timeout);
  }

  /// For a scheduler of user-level threads: runs the others for a turn, and returns once this one is to go on. It says
  /// how many could run or wait for brant, this one included: not those that wait for something else.
  using Yield = std::size_t (*)(void* scheduler) noexcept;

  /// A scheduler whose user-level threads all live on the worker's thread lets others run while one of them waits:
  /// every wait of this worker that finds nothing to do calls `yield(scheduler)`. What the others call may wait too,
  /// each on a stack of its own, and whoever makes progress makes it for all. Once as many stand in such waits as
  /// `yield` counts, they sleep as a single one would; a wait with a time-out then ends up to 1 ms late. Not to be
  /// changed within a wait. Null, as at the start: nobody. Cost: one call for each progress that saw nothing.
  void yield_to(Yield yield, void* scheduler) noexcept;

  /// For a program with an event loop of its own (asyncio, libuv, epoll), which waits for brant among other things:
  ///
  ///     for (;;) {
  ///       while (worker.progress() != 0) {}
  ///       poll on worker.fd() for worker.arm() at most
  ///     }
  ///
  /// `fd` becomes readable when there is something for `progress` to do, as far as it was armed: call `arm` before each
  /// wait, after a progress that saw nothing. It says how long to wait at most, for timers and for what cannot wake
  /// anybody: zero where something is to be done at once. The descriptor is the worker's, for its whole life: do not
  /// read from it or close it. Cost of `arm`: a few system calls.
  [[nodiscard]] int fd() const noexcept;
  [[nodiscard]] std::chrono::nanoseconds arm() noexcept;

  /// From any thread: runs `function(context)` on the worker's thread, inside a later progress. limit_reached when
  /// 1024 such calls wait already. Never blocks; wakes a sleeping worker.
  Status post(void (*function)(void*) noexcept, void* context) noexcept;

  /// Fires `timer` at or after `when`; a timer that was set is moved. Allocates only when more timers than ever before
  /// are set at once.
  void set_timer(Timer& timer, TimePoint when);
  /// Does nothing to an idle timer.
  void clear_timer(Timer& timer) noexcept;

  /// The runtime's inner side, for the layers above core.
  [[nodiscard]] Engine& engine() noexcept { return engine_; }

 private:
  Status wait(bool (*done)(void*) noexcept, void* context, std::chrono::nanoseconds timeout) noexcept;

  Engine& engine_;
};

}  // namespace brant
