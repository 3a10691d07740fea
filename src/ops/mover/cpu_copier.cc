#include "ops/mover/cpu_copier.h"

#include <algorithm>
#include <cstring>

#include "base/memory_fence.h"
#include "ops/mover/common_runs.h"

namespace brant {
namespace {

/// What this process writes next, to tell of the bytes, is not seen before them. Free on x86.
void publish() noexcept { memory_fence(std::memory_order_release); }

/// True: that was all.
bool copy_some(const Move& move, Move::ByCpu& step) noexcept {
  const std::size_t bytes = std::min(step.left, CpuCopier::kTurnBytes);
  RunMarks* const marks = move.marks;
  CpuCopier::copy({step.to, marks != nullptr ? &marks->to : nullptr},
                  {step.from, marks != nullptr ? &marks->from : nullptr}, bytes);
  step.to.advance(bytes);
  step.from.advance(bytes);
  step.left -= bytes;
  return step.left == 0;
}

void copy_runs(const StepEnd& to, const StepEnd& from, std::size_t bytes) noexcept {
  CommonRuns runs(to, from, bytes);
  while (runs.left() != 0) {
    const CommonRuns::Run run = runs.next();
    std::memcpy(run.to, run.from, run.bytes);
  }
}

}  // namespace

void CpuCopier::copy(void* to, const void* from, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
  publish();
}

void CpuCopier::copy(const StepEnd& to, const StepEnd& from, std::size_t bytes) noexcept {
  if (to.place.address == 0) return;
  if (to.shape == nullptr && from.shape == nullptr) return copy(to.place.memory(), from.place.memory(), bytes);
  copy_runs(to, from, bytes);
  publish();
}

Status CpuCopier::start(Move& move, const Move::ByCpu& step) noexcept {
  auto& own = move.step.emplace<Move::ByCpu>(step);
  if (copy_some(move, own)) {
    move.step = {};
    return Status::ok;
  }
  copying_.push_back(move);
  engine_.pollers().attach(*this);
  return Status::in_progress;
}

bool CpuCopier::withdraw(Move& move) noexcept {
  if (!copies(move)) return false;
  move.step = {};
  copying_.remove(move);
  if (copying_.empty()) engine_.pollers().detach(*this);
  return true;
}

unsigned CpuCopier::poll() noexcept {
  unsigned turns = 0;
  for (; turns < kPollTurns && !copying_.empty(); ++turns) {
    Move& move = *copying_.pop_front();
    if (copy_some(move, *std::get_if<Move::ByCpu>(&move.step))) {
      move.step = {};
      done_(context_, move, Status::ok);
    } else {
      copying_.push_back(move);
    }
  }
  if (copying_.empty()) engine_.pollers().detach(*this);
  return turns;
}

}  // namespace brant
