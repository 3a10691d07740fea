#include "models/mpi/ranks/rank_scheduler.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include "brant/core/worker.h"

namespace brant::mpi {

namespace {

/// So many turns of ranks for one look at the network, as long as ranks have something to do.
constexpr unsigned kTurnsBetweenLooks = 16;

}  // namespace

RankScheduler::RankScheduler(RankProgram& program, int count, std::size_t stack_bytes) : program_(program) {
  fibers_.reserve(static_cast<std::size_t>(count));
  waiting_.reserve(static_cast<std::size_t>(count));
  for (int slot = 0; slot < count; ++slot) {
    fibers_.push_back(std::make_unique<RankFiber>(slot, stack_bytes, &RankScheduler::body, this));
    make_ready(*fibers_.back());
  }
}

RankScheduler::~RankScheduler() = default;

int RankScheduler::current() const noexcept {
  const RankFiber* rank = running_ != nullptr ? running_ : asked_;
  return rank != nullptr ? rank->slot : 0;
}

int RankScheduler::caller() const noexcept {
  if (std::this_thread::get_id() == thread_) [[likely]]
    return current();
  std::fputs(
      "brant MPI: a thread that a rank has started calls MPI. Where several ranks share a process, the main thread of "
      "a rank alone may (MPI_THREAD_FUNNELED): run with one rank a process\n",
      stderr);
  ::_exit(1);
}

void RankScheduler::body(RankFiber& fiber, void* self) noexcept {
  auto& scheduler = *static_cast<RankScheduler*>(self);
  const int code = checked_exit_code(scheduler.program_.run(fiber.slot));
  if (code != 0) scheduler.exit_code_ = code;
  if (code == 0) note_rank_end();
  ++scheduler.ended_;
}

// Taking turns
// -------------------------------------------------------------------------------------------------------------------

int RankScheduler::run() noexcept {
  while (ended_ != fibers_.size() && exit_code_ == 0) {
    if (wake()) {
      run_ready();
    } else if (worker_ == nullptr) {
      std::fputs("brant MPI: all ranks of a process wait, and none of them has initialised MPI\n", stderr);
      std::abort();
    } else {
      static_cast<void>(worker_->wait_until([this] { return wake(); }));
    }
  }
  if (exit_code_ == 0) end_ranks();
  return exit_code_;
}

/// Those that are ready now, once each. The network is looked at now and then also where ranks are always ready.
void RankScheduler::run_ready() noexcept {
  for (std::size_t left = ready_count_; left != 0 && exit_code_ == 0; --left) {
    --ready_count_;
    enter(*ready_.pop_front());
    if (worker_ == nullptr || ++turns_ < kTurnsBetweenLooks) continue;
    turns_ = 0;
    static_cast<void>(worker_->progress());
  }
}

void RankScheduler::enter(RankFiber& fiber) noexcept {
  running_ = &fiber;
  program_.resume(fiber.slot);
  fiber.enter();
  program_.suspend(fiber.slot);
  running_ = nullptr;
}

void RankScheduler::leave() noexcept { running_->leave(); }

void RankScheduler::make_ready(RankFiber& fiber) noexcept {
  ready_.push_back(fiber);
  ++ready_count_;
}

/// Whether its wait is over, as if it asked itself.
bool RankScheduler::ask(RankFiber& fiber) noexcept {
  RankFiber* const running = std::exchange(running_, nullptr);
  RankFiber* const asked = std::exchange(asked_, &fiber);
  const bool over = fiber.done(fiber.context);
  asked_ = asked;
  running_ = running;
  return over;
}

bool RankScheduler::wake() noexcept {
  std::size_t kept = 0;
  for (RankFiber* fiber : waiting_) {
    if (ask(*fiber)) {
      make_ready(*fiber);
    } else {
      waiting_[kept++] = fiber;
    }
  }
  waiting_.resize(kept);
  return !ready_.empty();
}

void RankScheduler::stand_still(Done done, void* context) noexcept {
  running_->done = done;
  running_->context = context;
  leave();
}

void RankScheduler::wait(Done done, void* context) noexcept {
  if (done(context)) return;
  waiting_.push_back(running_);
  stand_still(done, context);
}

void RankScheduler::wait_for_notice(Done done, void* context) noexcept {
  if (done(context)) return;
  running_->awaits_notice = true;
  stand_still(done, context);
}

void RankScheduler::notice(int slot) noexcept {
  RankFiber& fiber = *fibers_[static_cast<std::size_t>(slot)];
  if (!fiber.awaits_notice || !ask(fiber)) return;
  fiber.awaits_notice = false;
  make_ready(fiber);
}

void RankScheduler::yield() noexcept {
  make_ready(*running_);
  leave();
}

void RankScheduler::attach(Worker* worker) noexcept {
  worker_ = worker;
  if (worker != nullptr) worker->yield_to(&RankScheduler::let_others_run, this);
}

/// A wait inside brant has found nothing to do. On a rank's stack, it has others run if any can; the scheduler's own
/// wait looks for those by itself.
std::size_t RankScheduler::let_others_run(void* self) noexcept {
  auto& scheduler = *static_cast<RankScheduler*>(self);
  if (scheduler.running_ == nullptr) return 0;
  const bool others_poll_only = scheduler.ready_count_ == scheduler.polling_;
  if (!scheduler.wake()) return 0;
  const bool others = !others_poll_only || scheduler.ready_count_ != scheduler.polling_;
  ++scheduler.polling_;
  scheduler.yield();
  --scheduler.polling_;
  return others ? std::numeric_limits<std::size_t>::max() : 0;
}

}  // namespace brant::mpi
