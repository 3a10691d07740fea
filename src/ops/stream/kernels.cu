#include "ops/mover/copy_bytes.cuh"
#include "ops/stream/steps.h"

namespace {

using brant::StreamControl;
using brant::StreamMailbox;
namespace stream_steps = brant::stream_steps;

struct StreamThread : brant::simt::GpuThread {
  __device__ __forceinline__ void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    brant::copy_bytes(to, from, bytes);
  }
};

}  // namespace

extern "C" __global__ void brant_stream_send(StreamMailbox* own, StreamMailbox* peer, StreamControl* control,
                                             const std::byte* from, std::uint64_t bytes,
                                             StreamControl::Report* report) {
  __shared__ stream_steps::Decision decision;
  StreamThread machine;
  stream_steps::send(machine, *own, *peer, *control, from, bytes, report, decision);
}

extern "C" __global__ void brant_stream_start(StreamMailbox* own, StreamMailbox* peer, StreamControl* control,
                                              stream_steps::Receive receive) {
  StreamThread machine;
  stream_steps::start_receive(machine, *own, *peer, *control, receive);
}

extern "C" __global__ void brant_stream_finish(StreamMailbox* own, StreamMailbox*, StreamControl* control,
                                               StreamControl::Report* report) {
  __shared__ stream_steps::Decision decision;
  StreamThread machine;
  stream_steps::finish_receive(machine, *own, *control, report, decision);
}

/// Both halves.
extern "C" __global__ void brant_stream_receive(StreamMailbox* own, StreamMailbox* peer, StreamControl* control,
                                                stream_steps::Receive receive, StreamControl::Report* report) {
  __shared__ stream_steps::Decision decision;
  StreamThread machine;
  if (threadIdx.x == 0) stream_steps::start_receive(machine, *own, *peer, *control, receive);
  __syncthreads();
  stream_steps::finish_receive(machine, *own, *control, report, decision);
}
