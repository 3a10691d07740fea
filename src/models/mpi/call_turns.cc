#include "models/mpi/call_turns.h"

#include <sched.h>

#include "core/engine.h"

namespace brant::mpi {

namespace {

// A turn takes less than a microsecond as a rule, and to be woken up takes many.
constexpr int kLooksForTurn = 200;
/// So long a thread that has had its turn leaves the next one to those that want it.
constexpr int kLooksForOthers = 200;

thread_local const char t_self = 0;

CallTurns g_turns;

}  // namespace

namespace detail {
// Before the first call of MPI_Init_thread or MPI_Session_init nobody knows whether calls overlap.
CallTurns* the_turns = &g_turns;
}  // namespace detail

void settle_turns(bool needed) noexcept { detail::the_turns = needed ? &g_turns : nullptr; }

void need_turns(Engine& engine) noexcept {
  if (detail::the_turns != nullptr) return;
  detail::the_turns = &g_turns;
  g_turns.attach(&engine);
}

void CallTurns::attach(Engine* engine) noexcept {
  if (engine_ != nullptr) engine_->waiting().take_turns(nullptr);
  engine_ = engine;
  if (engine_ != nullptr) engine_->waiting().take_turns(this);
}

/// Whoever has the turn now.
void CallTurns::take() noexcept {
  bool taken = mutex_.try_lock();
  if (!taken) {
    wanting_.fetch_add(1);
    for (int look = 0; look < kLooksForTurn && !(taken = mutex_.try_lock()); ++look) ::sched_yield();
    if (!taken) mutex_.lock();
    wanting_.fetch_sub(1);
  }
  owner_.store(&t_self, std::memory_order_relaxed);
  turns_.fetch_add(1, std::memory_order_relaxed);
}

void CallTurns::give_up() noexcept {
  owner_.store(nullptr, std::memory_order_relaxed);
  mutex_.unlock();
}

/// Without a turn: until another thread has got one, if one wants it. A mutex alone would go to who asks at once.
void CallTurns::let_one_in() noexcept {
  const std::uint32_t before = turns_.load(std::memory_order_relaxed);
  for (int look = 0; look < kLooksForOthers && wanting_.load(std::memory_order_relaxed) != 0; ++look) {
    if (turns_.load(std::memory_order_relaxed) != before) return;
    ::sched_yield();
  }
}

/// What this thread has moved, others may wait for; and it may have taken what was to wake them.
void CallTurns::rouse() noexcept {
  if (asleep_) engine_->waiting().rouse();
  if (standing_by_ != 0) news_.notify_all();
}

void CallTurns::enter() noexcept {
  if (owner_.load(std::memory_order_relaxed) == &t_self) {
    ++depth_;
    return;
  }
  take();
  depth_ = 1;
  ++threads_inside_;
}

void CallTurns::leave() noexcept {
  if (--depth_ != 0) return;
  --threads_inside_;
  rouse();
  const bool wanted = wanting_.load(std::memory_order_relaxed) != 0;
  give_up();
  if (wanted) let_one_in();
}

bool CallTurns::step_out() noexcept {
  if (owner_.load(std::memory_order_relaxed) != &t_self || depth_ != 1) return false;
  rouse();
  give_up();
  return true;
}

void CallTurns::step_in() noexcept {
  take();
  depth_ = 1;
}

void CallTurns::offer(bool moved) noexcept {
  if (depth_ != 1) return;
  if (moved) rouse();
  if (wanting_.load(std::memory_order_relaxed) == 0) return;
  give_up();
  let_one_in();
  take();
  depth_ = 1;
}

void CallTurns::stand_by(TimePoint deadline) noexcept {
  if (depth_ != 1) return;
  if (asleep_) engine_->waiting().rouse();  // it arms anew what this thread has looked at
  ++standing_by_;
  owner_.store(nullptr, std::memory_order_relaxed);
  std::unique_lock lock(mutex_, std::adopt_lock);
  news_.wait_until(lock, deadline);
  static_cast<void>(lock.release());
  --standing_by_;
  owner_.store(&t_self, std::memory_order_relaxed);
  turns_.fetch_add(1, std::memory_order_relaxed);
  depth_ = 1;
}

void CallTurns::begin_sleep() noexcept {
  if (depth_ != 1) return;
  asleep_ = true;
  give_up();
}

void CallTurns::end_sleep() noexcept {
  if (owner_.load(std::memory_order_relaxed) == &t_self) return;  // nested: it kept its turn
  take();
  depth_ = 1;
  asleep_ = false;
}

}  // namespace brant::mpi
