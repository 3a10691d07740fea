#include "ops/courier/cuda_machine.cuh"
#include "ops/courier/dispatcher.h"
#include "ops/courier/worker_group.h"

namespace {

using namespace brant::courier;

}  // namespace

/// Warp 0 of block 0 is the dispatcher; warps 1 and on of every block are a group.
extern "C" __global__ void __launch_bounds__(kThreadsMax) brant_courier(const Launch launch) {
  __shared__ BlockDesk block;
  __shared__ GroupDesk group;
  const unsigned warp = threadIdx.x / 32;
  const unsigned group_warps = blockDim.x / 32 - 1;
  if (blockIdx.x == 0) {
    CudaMachine machine(warp - 1, group_warps);
    if (warp == 0) {
      Dispatcher<CudaMachine> dispatcher(machine, launch, block);
      dispatcher.prepare();
      __syncthreads();
      dispatcher.run();
    } else {
      __syncthreads();
      WorkerGroup<CudaMachine>(machine, launch, group).run_beside(block);
    }
  } else if (warp > 0) {
    CudaMachine machine(warp - 1, group_warps);
    WorkerGroup<CudaMachine>(machine, launch, group).run_apart();
  }
}
