#include "steps.h"

using namespace brant;
using namespace brant::bench::kernel_steps;

extern "C" __global__ void __launch_bounds__(1024) brant_bench_kernel_put_notify(KernelControl control, Play play) {
  simt::GpuThread machine;
  put_notify(machine, control, play);
}
extern "C" __global__ void __launch_bounds__(1024) brant_bench_kernel_put_lines(KernelControl control, Play play) {
  simt::GpuThread machine;
  put_lines(machine, control, play);
}
extern "C" __global__ void __launch_bounds__(1024)
    brant_bench_kernel_stream_puts(KernelControl control, Play play, Word told) {
  simt::GpuThread machine;
  stream_puts(machine, control, play, told);
}
extern "C" __global__ void __launch_bounds__(1024) brant_bench_kernel_get(KernelControl control, Play play) {
  simt::GpuThread machine;
  get(machine, control, play);
}
extern "C" __global__ void __launch_bounds__(1024)
    brant_bench_kernel_fetch_add(KernelControl control, Play play, Word relaxed) {
  simt::GpuThread machine;
  fetch_add(machine, control, play, relaxed);
}
extern "C" __global__ void __launch_bounds__(1024) brant_bench_kernel_barrier(KernelControl control, Play play) {
  simt::GpuThread machine;
  barrier(machine, control, play);
}
