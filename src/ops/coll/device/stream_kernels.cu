#include "ops/coll/device/stream_rounds.h"

namespace {

template <bool kInLines, bool kLight>
__device__ __forceinline__ void run(const brant::coll::StreamCall& call) {
  brant::simt::GpuThread machine;
  brant::coll::StreamRounds<brant::simt::GpuThread, kInLines, kLight>(machine, call).run();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(512, 1)
    brant_coll_lines(const __grid_constant__ brant::coll::StreamCall call) {
  run<true, false>(call);
}
extern "C" __global__ void __launch_bounds__(512, 1)
    brant_coll_lines_light(const __grid_constant__ brant::coll::StreamCall call) {
  run<true, true>(call);
}
extern "C" __global__ void __launch_bounds__(512, 1)
    brant_coll_rooms(const __grid_constant__ brant::coll::StreamCall call) {
  run<false, false>(call);
}
extern "C" __global__ void __launch_bounds__(512, 1)
    brant_coll_rooms_light(const __grid_constant__ brant::coll::StreamCall call) {
  run<false, true>(call);
}
