#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "brant/base/api.h"
#include "core/turn_taking.h"

namespace brant {
class Engine;
}

namespace brant::mpi {

/// Threads that may call MPI at any time (MPI_THREAD_MULTIPLE) take turns: one of them is in a call, and one that waits
/// in a call lets others in. So nothing below needs locks of its own. A function of the program that a call calls may
/// call MPI again, and lets nobody in then.
class CallTurns final : public TurnTaking {
 public:
  BRANT_API void enter() noexcept;
  BRANT_API void leave() noexcept;
  /// Of the thread whose turn it is: others are in calls that wait.
  [[nodiscard]] bool others_wait() const noexcept { return threads_inside_ > 1; }

  /// Of a thread in a call, before it calls something else that may block, and behind that: others have turns
  /// meanwhile. False: it is within another call of its own, and keeps its turn, or it has none.
  bool step_out() noexcept;
  void step_in() noexcept;

  /// Whose waits let others in, from now on; null: none.
  void attach(Engine* engine) noexcept;

  void offer(bool moved) noexcept override;
  [[nodiscard]] bool another_sleeps() const noexcept override { return asleep_; }
  void stand_by(TimePoint deadline) noexcept override;
  void begin_sleep() noexcept override;
  void end_sleep() noexcept override;

 private:
  void take() noexcept;
  void give_up() noexcept;
  void let_one_in() noexcept;
  void rouse() noexcept;

  std::mutex mutex_;                         ///< Of the thread whose turn it is.
  std::atomic<const void*> owner_{nullptr};  ///< Names that thread.
  std::atomic<std::uint32_t> wanting_{0};    ///< Threads that wait for a turn.
  std::atomic<std::uint32_t> turns_{0};      ///< That have begun.
  std::condition_variable news_;             ///< For those that stand by.
  unsigned depth_ = 0;                       ///< Calls that the thread is in.
  unsigned threads_inside_ = 0;              ///< Those that are in a call, this one too.
  unsigned standing_by_ = 0;
  bool asleep_ = false;  ///< A thread sleeps on the worker's descriptors.
  Engine* engine_ = nullptr;
};

namespace detail {
/// Null: calls of threads do not overlap, as the program has promised.
BRANT_API extern CallTurns* the_turns;
}  // namespace detail

/// The process has been granted a level of threads, once for all: only the highest one needs turns.
void settle_turns(bool needed) noexcept;
/// brant has a thread of its own from now on that calls MPI. Calls that have begun have no turn yet: it begins in a
/// later one.
void need_turns(Engine& engine) noexcept;

/// A call of MPI, as long as it lives.
class Turn {
 public:
  Turn() noexcept : turns_(detail::the_turns) {
    if (turns_ != nullptr) [[unlikely]]
      turns_->enter();
  }
  ~Turn() {
    if (turns_ != nullptr) [[unlikely]]
      turns_->leave();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  CallTurns* const turns_;
};

/// Others have turns, as long as it lives.
class TurnPause {
 public:
  TurnPause() noexcept : left_(detail::the_turns != nullptr && detail::the_turns->step_out()) {}
  ~TurnPause() {
    if (left_) detail::the_turns->step_in();
  }
  TurnPause(const TurnPause&) = delete;
  TurnPause& operator=(const TurnPause&) = delete;

 private:
  const bool left_;
};

}  // namespace brant::mpi
