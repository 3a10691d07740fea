#include "ops/coll/device/stream_rounds.h"

extern "C" __global__ void __launch_bounds__(512, 1)
    brant_coll_stream(const __grid_constant__ brant::coll::StreamCall call) {
  brant::simt::GpuThread machine;
  brant::coll::StreamRounds<brant::simt::GpuThread>(machine, call).run();
}
