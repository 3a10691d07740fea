#include "steps.h"

using namespace brant;
using namespace brant::test::steps;

extern "C" __global__ void brant_test_ring(DeviceBell bell, Word epoch) {
  simt::GpuThread machine;
  ring_once(machine, bell, epoch);
}

extern "C" __global__ void brant_test_make_part(DeviceBell bell, Word* words, Word count, Word epoch) {
  simt::GpuThread machine;
  make_part(machine, bell, words, count, epoch);
}

extern "C" __global__ void brant_test_add_items(KernelControl control, Word* sums) {
  simt::GpuThread machine;
  add_items(machine, control, sums);
}

extern "C" __global__ void brant_test_pass_on(KernelControl control, DeviceBell from, DeviceBell to, FanIn fan_in) {
  simt::GpuThread machine;
  pass_on(machine, control, from, to, fan_in);
}

extern "C" __global__ void brant_test_never_listen(KernelControl control, Word* may_end) {
  simt::GpuThread machine;
  never_listen(machine, control, may_end);
}
