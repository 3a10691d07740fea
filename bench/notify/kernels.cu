#include "steps.h"

using namespace brant;
using namespace brant::bench::notify_steps;

extern "C" __global__ void brant_bench_notify_echo(KernelControl control, DeviceBell in, DeviceBell out, Word rounds,
                                                   Witness witness, Word relaxed) {
  simt::GpuThread machine;
  echo(machine, control, in, out, rounds, witness, relaxed);
}

extern "C" __global__ void brant_bench_notify_cost(KernelControl control, DeviceBell seen, DeviceBell rung, Word rounds,
                                                   Word* nanoseconds) {
  simt::GpuThread machine;
  cost(machine, control, seen, rung, rounds, nanoseconds);
}

extern "C" __global__ void brant_bench_notify_play(KernelControl control, DeviceBell own, DeviceBell peers, Word rounds,
                                                   Word leads, Word* nanoseconds) {
  simt::GpuThread machine;
  play(machine, control, own, peers, rounds, leads, nanoseconds);
}

/// Of as many threads as a block can have, which leaves each 64 registers.
constexpr unsigned kThreadsMax = 1024;

extern "C" __global__ void __launch_bounds__(kThreadsMax)
    brant_bench_notify_play_put(KernelControl control, DeviceBell own, DeviceBell peers, void* to, const Word* landed,
                                Play play) {
  simt::GpuThread machine;
  play_put(machine, control, own, peers, to, landed, play);
}

extern "C" __global__ void __launch_bounds__(kThreadsMax)
    brant_bench_notify_play_lines(KernelControl control, Line* to, const Line* from, Play play) {
  simt::GpuThread machine;
  play_lines(machine, control, to, from, play);
}

extern "C" __global__ void brant_bench_notify_nothing() {}
