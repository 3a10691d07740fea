#include "solver.h"

#include <algorithm>
#include <thread>

#include "clock.h"

namespace jacobi {

/// Moves the network while a step runs. Kernels end by themselves or fail, so this ends.
void Solver::finish(Step step) {
  while (!stencil_.finished(step)) {
    if (runtime_.worker().progress() == 0 && !brant::host_accessible(block_.kind())) std::this_thread::yield();
  }
}

/// Ghost cells of the current field become those of the neighbours. With overlap, the interior is under way or done as
/// well.
void Solver::exchange(bool overlap) {
  stencil_.start(Step::pack);
  if (overlap) stencil_.start(Step::interior);
  finish(Step::pack);
  halo_.post_sends();
  if (overlap && brant::host_accessible(block_.kind())) finish(Step::interior);  // this thread does the work
  static_cast<void>(runtime_.worker().wait_until([&] { return halo_.finished(); }));
  halo_.complete();
  stencil_.start(Step::unpack);
}

Solver::Iteration Solver::iterate(bool overlap, bool is_last) {
  const Clock::time_point begin = Clock::now();
  exchange(overlap);
  stencil_.start(overlap ? Step::shell : Step::whole);  // queued behind the unpacking
  finish(Step::unpack);
  const Clock::time_point exchanged = Clock::now();
  finish(overlap ? Step::shell : Step::whole);
  if (overlap) finish(Step::interior);
  const Clock::time_point swept = Clock::now();
  block_.swap();
  if (!is_last) halo_.post_receives();  // early: what a quicker neighbour sends finds its place
  const Clock::time_point end = Clock::now();
  return {microseconds(begin, end), microseconds(overlap ? begin : exchanged, swept),
          microseconds(begin, exchanged) + microseconds(swept, end)};
}

Solution Solver::run(const SolverOptions& options) {
  Solution solution;
  Timing& timing = solution.timing;
  timing.samples.reserve(std::min<std::size_t>(static_cast<std::size_t>(options.iterations), kSamplesMax));
  const std::int64_t last = options.warmup + options.iterations;
  star_.agree([&] { halo_.post_receives(); });  // a path that cannot carry this memory is refused here
  for (std::int64_t done = 1; done <= last; ++done) {
    if (done == options.warmup + 1) star_.barrier();
    const Iteration one = iterate(options.overlap, done == last);
    if (done > options.warmup) {
      timing.iteration += one.total;
      timing.compute += one.compute;
      timing.communication += one.communication;
      if (timing.samples.size() < kSamplesMax) timing.samples.push_back(static_cast<float>(one.total));
    }
    const bool wanted = options.residual_every > 0 && done % options.residual_every == 0;
    if (wanted || done == last) solution.residual = star_.largest(stencil_.largest_change());
    if (options.on_iteration) options.on_iteration(done);
  }
  const double shares = static_cast<double>(options.iterations) * star_.size();
  for (double* time : {&timing.iteration, &timing.compute, &timing.communication}) *time = star_.sum(*time) / shares;
  return solution;
}

}  // namespace jacobi
