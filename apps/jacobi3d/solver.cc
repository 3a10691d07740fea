#include "solver.h"

#include <chrono>

namespace jacobi {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::time_point from, Clock::time_point to) noexcept {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

/// Ghost cells of the current field become those of the neighbours, as far as they do not lie packed in a buffer. With
/// overlap, the interior is under way or done as well.
brant::Task<void> exchange(Block& block, Stencil& stencil, Halo& halo, bool overlap) {
  stencil.start(Step::pack);
  if (overlap) stencil.start(Step::interior);
  co_await stencil.finish(Step::pack);
  halo.send_faces();
  if (overlap && brant::host_accessible(block.kind())) co_await stencil.finish(Step::interior);  // this thread computes
  co_await halo.finish();
}

}  // namespace

brant::Task<Solution> solve(Block& block, Stencil& stencil, Halo& halo, Plan plan) {
  Solution solution;
  solution.samples.reserve(std::min<std::size_t>(static_cast<std::size_t>(plan.iterations), kSamplesMax));
  const Step rest = plan.overlap ? Step::shell : Step::whole;
  halo.receive_ghosts();
  for (std::int64_t left = plan.warmup + plan.iterations; left > 0; --left) {
    const Clock::time_point begin = Clock::now();
    co_await exchange(block, stencil, halo, plan.overlap);
    stencil.start(Step::unpack);
    stencil.start(rest);  // queued behind the unpacking
    co_await stencil.finish(Step::unpack);
    const Clock::time_point exchanged = Clock::now();
    co_await stencil.finish(rest);
    if (plan.overlap) co_await stencil.finish(Step::interior);
    const Clock::time_point swept = Clock::now();
    block.swap();
    if (left > 1) halo.receive_ghosts();
    const Clock::time_point end = Clock::now();
    if (left > plan.iterations) continue;
    solution.iteration += microseconds(begin, end);
    solution.compute += microseconds(plan.overlap ? begin : exchanged, swept);
    solution.communication += microseconds(begin, exchanged) + microseconds(swept, end);
    if (solution.samples.size() < kSamplesMax) solution.samples.push_back(microseconds(begin, end));
  }
  solution.residual = stencil.largest_change();
  co_return solution;
}

}  // namespace jacobi
