#include "ops/courier/cuda_machine.cuh"
#include "ops/courier/dispatcher.h"
#include "ops/courier/worker_group.h"

namespace {

using namespace brant::courier;

}  // namespace

/// The first warps of block 0 are the dispatchers; the others there, and those of every other block, are a group.
extern "C" __global__ void __launch_bounds__(kThreadsMax) brant_courier(const Launch launch) {
  __shared__ BlockDesk block;
  __shared__ GroupDesk group;
  const unsigned warp = threadIdx.x / 32;
  const unsigned warps = blockDim.x / 32;
  if (blockIdx.x != 0) {
    CudaMachine machine(launch.by_model != 0, warp, warps);
    WorkerGroup<CudaMachine>(machine, launch, group).run_apart();
    return;
  }
  CudaMachine machine(launch.by_model != 0, warp - launch.dispatchers, warps - launch.dispatchers);
  if (warp < launch.dispatchers) {
    Dispatcher<CudaMachine> dispatcher(machine, launch, block, warp);
    if (warp == 0) dispatcher.prepare();
    __syncthreads();
    dispatcher.run();
  } else {
    __syncthreads();
    WorkerGroup<CudaMachine>(machine, launch, group).run_beside(block);
  }
}
