// Jacobi3D: the mean of a cell and its six neighbours, again and again, on as many processes as wanted. Each process
// owns a block of the grid (block.h), computes on it (stencil.h), and exchanges faces with its neighbours over channels
// (halo.h); solver.h is the loop.
#include <chrono>
#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "job.h"

namespace {

using namespace jacobi;

void tell(const char* what) {
  fmt::print(stderr, "error: {}\n", what);
  std::fflush(stderr);
}

/// Leaves the word to another process: our end would make the launcher end it, perhaps before it has spoken. Bounded,
/// since there may be no such process, and longer than the second in which `brant run` lets others end by themselves.
void let_others_speak() { std::this_thread::sleep_for(std::chrono::milliseconds(1500)); }

/// Runs the job. What all processes found out together is told once, and they end in peace. Anything else leaves the
/// runtime as an exception: the launcher then ends the others.
int run_job(const Options& options) {
  brant::Runtime runtime(runtime_options(options));
  try {
    Star star(runtime);
    Job job(runtime, star);
    options.demo ? job.demo(options) : job.run(options);
    return 0;
  } catch (const AgreedError& error) {
    if (runtime.rank().value == 0) tell(error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  int exit_code = 0;
  try {
    const std::optional<Options> options = parse_options(argc, argv, exit_code);
    if (options) return run_job(*options);
    if (exit_code != 0 && !is_first_process()) let_others_speak();
    return exit_code;
  } catch (const brant::Error& error) {
    // What every process finds is told by the first; a lost peer is the echo of an error told elsewhere.
    if (error.status() == brant::Status::peer_lost || !is_first_process()) let_others_speak();
    tell(error.what());
  } catch (const std::exception& error) {
    tell(error.what());
  }
  return 1;
}
