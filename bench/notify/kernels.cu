#include "steps.h"

using namespace brant;
using namespace brant::bench::notify_steps;

extern "C" __global__ void brant_bench_notify_echo(KernelControl control, DeviceBell in, DeviceBell out, Word rounds,
                                                   Witness witness) {
  simt::GpuThread machine;
  echo(machine, control, in, out, rounds, witness);
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

extern "C" __global__ void brant_bench_notify_nothing() {}
