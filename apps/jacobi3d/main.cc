// Jacobi3D: the mean of a cell and its six neighbours, again and again, on as many processes as wanted. Each process
// owns blocks of the grid (block.h) and computes on them (stencil.h); solver.h is the loop, and models.h says in which
// ways the faces travel.
#include "job.h"
#include "program.h"

int main(int argc, char** argv) {
  return apps::run_program([&] {
    int exit_code = 0;
    const std::optional<jacobi::Options> options = jacobi::parse_options(argc, argv, exit_code);
    if (!options) return exit_code;
    apps::with_runtime(jacobi::runtime_options(*options), [&](brant::Runtime& runtime) {
      brant::Team team = brant::Team::world(runtime);
      jacobi::run_job(runtime, team, *options);
    });
    return 0;
  });
}
