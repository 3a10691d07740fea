#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace brant::test::model {

/// Runs a few threads one step at a time and tries every schedule: which thread goes on, which of its stores becomes
/// visible next, what a clock shows. Depth first over the choices made, with a bound on the choices that are not the
/// first (preemptions, stores made visible early), as most faults need only two or three of them.
///
/// Memory is as weak as a GPU's over a bus: a store stays in its thread's buffer until the scheduler lets it out, in
/// any order among different words; a fence lets all of them out. Loads are not reordered.
///
/// With `far_threads`, what the others store is not seen by all at once, which is all that PTX's memory model promises:
/// to far threads each store crosses a bus by itself, in any order. A fence then keeps in order what its thread could
/// see before it and what its thread stores after it, and no more: a fence that is over has carried nothing across.
class Scheduler {
 public:
  explicit Scheduler(unsigned deviations_max) : deviations_max_(deviations_max) {}

  /// One run per schedule: `make` returns the threads' bodies for a fresh state, `check` looks at the end of it.
  /// Stops at the first fault, or after `schedules_max`.
  void explore(const std::function<std::vector<std::function<void()>>()>& make, const std::function<void()>& check,
               std::size_t schedules_max);

  /// The same with choices by chance: one in `one_in` is not the first.
  void sample(const std::function<std::vector<std::function<void()>>()>& make, const std::function<void()>& check,
              std::size_t schedules, unsigned one_in, std::uint64_t seed);

  /// Called when nobody can go on; true if it changed that. For clocks: time passes when nothing else happens.
  std::function<bool()> on_stuck;

  /// So many of the first threads are on the other side of the bus. Set before a run.
  unsigned far_threads = 0;

  [[nodiscard]] std::size_t schedules() const noexcept { return schedules_; }
  [[nodiscard]] bool complete() const noexcept { return complete_; }
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }

  // What the threads call.
  void store(std::uint64_t* to, std::uint64_t value);
  std::uint64_t load(const std::uint64_t* from);
  /// No step of its own: together with what the thread did last.
  [[nodiscard]] std::uint64_t peek(const std::uint64_t* from) const;
  std::uint64_t add(std::uint64_t* to, std::uint64_t value);
  void fence();
  /// Of threads on this side of the bus alone: what crosses it keeps no order.
  void fence_near();
  /// The thread can do nothing until another one's store becomes visible.
  void pause();
  /// One of 0 to `count - 1`; 0 is what happens without a deviation.
  unsigned choose(unsigned count);
  /// A promise was broken; ends the run. No thread goes on or is unwound: what is tried here may be noexcept, and what
  /// the threads' stacks own stays behind.
  [[noreturn]] void fail(const std::string& what);
  void expect(bool kept, const char* what) {
    if (!kept) fail(what);
  }

 private:
  struct Thread {
    ucontext_t place;
    std::function<void()> body;
    std::vector<std::pair<std::uint64_t*, std::uint64_t>> buffer;
    bool ended = false;
    bool waiting = false;  ///< In `pause`, until `changes_` moves on.
    bool looking = false;  ///< It has loaded since it last paused or wrote.
    std::uint64_t seen = 0;
    std::size_t fenced = 0;  ///< What crosses the bus behind all that is older than this.
  };
  /// A store that the near threads see and the far ones do not yet.
  struct Crossing {
    const std::uint64_t* word;
    std::uint64_t before;  ///< What the far ones see.
    std::size_t number;
    std::size_t fenced;
  };
  struct Choice {
    unsigned taken;
    unsigned count;
  };

  static void enter(unsigned high, unsigned low);
  void run_body();
  void run_one(std::vector<std::function<void()>> bodies);
  bool next_schedule();
  void step();
  void let_out(Thread& thread, std::size_t index);
  void set_word(const Thread& by, std::uint64_t* to, std::uint64_t value);
  void cross(std::size_t index);
  [[nodiscard]] bool can_cross(std::size_t index) const;
  [[nodiscard]] bool far(unsigned thread) const { return thread < far_threads; }
  void hand_over(unsigned to);
  [[nodiscard]] bool can_run(const Thread& thread) const;
  /// Everybody waits: a store becomes visible, as it must in the end, or time passes. False if that changes nothing.
  bool unstick();

  const unsigned deviations_max_;
  std::vector<Choice> path_;
  std::size_t depth_ = 0;
  unsigned deviations_ = 0;
  std::size_t schedules_ = 0;
  bool complete_ = false;
  std::string fault_;

  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Crossing> crossings_;  ///< Oldest first.
  std::size_t crossings_made_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> stacks_;  ///< Kept from run to run.
  ucontext_t home_{};
  unsigned running_ = 0;
  bool abandoned_ = false;
  std::uint64_t changes_ = 0;
  unsigned one_in_ = 0;  ///< 0: depth first.
  std::mt19937_64 chance_;
  std::size_t steps_ = 0;
};

}  // namespace brant::test::model
