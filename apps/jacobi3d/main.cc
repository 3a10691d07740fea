// Jacobi3D: the mean of a cell and its six neighbours, again and again, on as many processes as wanted. Each process
// owns blocks of the grid (block.h) and computes on them (stencil.h); solver.h is the loop, and models.h says in which
// ways the faces travel.
#include <chrono>
#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "job.h"

namespace {

void tell(const char* what) {
  fmt::print(stderr, "error: {}\n", what);
  std::fflush(stderr);
}

/// Leaves the word to another process: our end would make the launcher end it, perhaps before it has spoken. Bounded,
/// since there may be no such process, and longer than the second in which `brant run` lets others end by themselves.
void let_others_speak() { std::this_thread::sleep_for(std::chrono::milliseconds(1500)); }

void run(const jacobi::Options& options) {
  brant::Runtime runtime(jacobi::runtime_options(options));
  try {
    jacobi::Team team(runtime);
    jacobi::run_job(runtime, team, options);
  } catch (const brant::Error&) {
    if (!jacobi::is_first_process()) let_others_speak();  // while the first can still reach this one
    throw;
  }
}

}  // namespace

int main(int argc, char** argv) {
  int exit_code = 0;
  try {
    const std::optional<jacobi::Options> options = jacobi::parse_options(argc, argv, exit_code);
    if (options) run(*options);
    if (exit_code != 0 && !jacobi::is_first_process()) let_others_speak();
    return exit_code;
  } catch (const brant::Error& error) {
    // What every process finds is told by the first; a lost peer is the echo of an error told elsewhere.
    if (error.status() == brant::Status::peer_lost || !jacobi::is_first_process()) let_others_speak();
    tell(error.what());
  } catch (const std::exception& error) {
    tell(error.what());
  }
  return 1;
}
