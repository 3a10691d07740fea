#include "steps.h"

using namespace brant;
using namespace brant::bench::interference_steps;

/// As many threads as a block can have, so that one block for each of few multiprocessors is all of the device.
constexpr unsigned kThreadsMax = 1024;

extern "C" __global__ void __launch_bounds__(kThreadsMax)
    brant_bench_interference_write(Word* to, Word count, Word round) {
  simt::GpuThread machine;
  write(machine, to, count, round, 0);
}

extern "C" __global__ void __launch_bounds__(kThreadsMax)
    brant_bench_interference_play(KernelControl control, Scene scene, FanIn arrivals) {
  simt::GpuThread machine;
  Player player(machine, control, scene, arrivals);
  player.play();
}
