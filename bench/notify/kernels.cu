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

extern "C" __global__ void brant_bench_notify_play_put(KernelControl control, DeviceBell own, DeviceBell peers,
                                                       Word rounds, Word leads, void* to, const void* from, Word bytes,
                                                       Word* nanoseconds) {
  simt::GpuThread machine;
  play_put(machine, control, own, peers, rounds, leads, to, from, bytes, nanoseconds);
}

extern "C" __global__ void brant_bench_notify_play_lines(KernelControl control, Line* to, const Line* from, Word rounds,
                                                         Word leads, Word* words, Word count, Word* nanoseconds) {
  simt::GpuThread machine;
  play_lines(machine, control, to, from, rounds, leads, words, count, nanoseconds);
}

extern "C" __global__ void brant_bench_notify_nothing() {}
