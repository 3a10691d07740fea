// heat3d: heat goes into one side of a box and is radiated by all of them. The box is cut into one block per process
// (block.h), each of which computes its cells (computer.h) and exchanges its faces (exchange.h) in every step (run.cc).
#include "options.h"
#include "program.h"
#include "run.h"

int main(int argc, char** argv) {
  return apps::run_program([&] {
    int exit_code = 0;
    const std::optional<heat::Options> options = heat::parse_options(argc, argv, exit_code);
    if (!options) return exit_code;
    apps::with_runtime(heat::runtime_options(*options),
                       [&](brant::Runtime& runtime) { heat::run_job(runtime, *options); });
    return 0;
  });
}
