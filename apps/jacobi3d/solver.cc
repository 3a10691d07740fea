#include "solver.h"

#include <chrono>

namespace jacobi {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::time_point from, Clock::time_point to) noexcept {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

}  // namespace

brant::Task<Solution> solve(Block& block, Stencil& stencil, Halo& halo, Plan plan) {
  Solution solution;
  solution.sent_bytes = static_cast<double>(halo.message_bytes());
  solution.samples.reserve(std::min<std::size_t>(static_cast<std::size_t>(plan.iterations), kSamplesMax));
  const Step rest = plan.overlap ? Step::shell : Step::whole;
  const bool computes_here = brant::host_accessible(block.kind());  // this thread does the work of a sweep
  halo.receive_ghosts();
  for (std::int64_t left = plan.warmup + plan.iterations; left > 0; --left) {
    const Clock::time_point begin = Clock::now();
    stencil.start(Step::pack);
    if (plan.overlap) stencil.start(Step::interior);
    co_await stencil.finish(Step::pack);
    halo.send_faces();
    if (plan.overlap && computes_here) co_await stencil.finish(Step::interior);
    co_await halo.finish();
    stencil.start(Step::unpack);
    stencil.start(rest);  // queued behind the unpacking
    co_await stencil.finish(Step::unpack);
    const Clock::time_point exchanged = Clock::now();
    co_await stencil.finish(rest);
    if (plan.overlap && !computes_here) co_await stencil.finish(Step::interior);
    const Clock::time_point swept = Clock::now();
    if (const std::int64_t number = plan.warmup + plan.iterations - left + 1;
        plan.residual_every != 0 && number % plan.residual_every == 0) {
      solution.residual = {number, co_await halo.largest_of_all(co_await stencil.largest_change())};
    }
    block.swap();
    if (left > 1) halo.receive_ghosts();
    const Clock::time_point end = Clock::now();
    if (left > plan.iterations) continue;
    solution.iteration += microseconds(begin, end);
    solution.compute += microseconds(plan.overlap ? begin : exchanged, swept);
    solution.communication += microseconds(begin, exchanged) + microseconds(swept, end);
    if (solution.samples.size() < kSamplesMax) solution.samples.push_back(microseconds(begin, end));
  }
  co_return solution;
}

}  // namespace jacobi
