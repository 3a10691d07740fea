#include "ops/channel/stream_steps.h"
#include "ops/mover/copy_bytes.cuh"

namespace {

using brant::StreamControl;
using brant::StreamMailbox;
namespace stream_steps = brant::stream_steps;

/// A thread of a GPU.
struct GpuThread {
  __device__ static unsigned thread() { return threadIdx.x; }
  __device__ static unsigned threads() { return blockDim.x; }
  __device__ static unsigned blocks() { return gridDim.x; }
  __device__ static void join_block() { __syncthreads(); }
  __device__ static void pause() {}

  __device__ static std::uint64_t load_acquire(const std::uint64_t& word) {
    std::uint64_t value;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(&word) : "memory");
    return value;
  }
  __device__ static std::byte* load_acquire(std::byte* const& word) {
    return reinterpret_cast<std::byte*>(load_acquire(reinterpret_cast<const std::uint64_t&>(word)));
  }
  __device__ static void store_release(std::uint64_t& word, std::uint64_t value) {
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(&word), "l"(value) : "memory");
  }
  __device__ static std::uint64_t load_relaxed(const std::uint64_t& word) {
    std::uint64_t value;
    asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(&word) : "memory");
    return value;
  }
  __device__ static void store_relaxed(std::uint64_t& word, std::uint64_t value) {
    asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(&word), "l"(value) : "memory");
  }
  __device__ static std::uint64_t now_ns() {
    std::uint64_t value;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(value));
    return value;
  }
  /// One address space for all.
  __device__ static std::byte* reach(std::byte* pointer) { return pointer; }

  /// Of the thread that speaks for its block, once each. The last of them gets true, and has seen what all have done.
  __device__ static bool last_block_done(std::uint64_t& done) {
    if (gridDim.x == 1) return true;
    __threadfence_system();
    auto* count = reinterpret_cast<unsigned long long*>(&done);
    if (atomicAdd(count, 1ull) + 1 != gridDim.x) return false;
    __threadfence_system();
    done = 0;
    return true;
  }

  __device__ static void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    brant::copy_bytes(to, from, bytes);
  }
};

}  // namespace

extern "C" __global__ void brant_stream_send(StreamMailbox* own, StreamMailbox* peer, StreamControl* control,
                                             const std::byte* from, std::uint64_t bytes,
                                             StreamControl::Report* report) {
  __shared__ stream_steps::Decision decision;
  stream_steps::send<GpuThread>(*own, *peer, *control, from, bytes, report, decision);
}

extern "C" __global__ void brant_stream_start(StreamMailbox* own, StreamMailbox* peer, StreamControl* control,
                                              stream_steps::Receive receive) {
  stream_steps::start_receive<GpuThread>(*own, *peer, *control, receive);
}

extern "C" __global__ void brant_stream_finish(StreamMailbox* own, StreamMailbox*, StreamControl* control,
                                               StreamControl::Report* report) {
  __shared__ stream_steps::Decision decision;
  stream_steps::finish_receive<GpuThread>(*own, *control, report, decision);
}

/// Both halves.
extern "C" __global__ void brant_stream_receive(StreamMailbox* own, StreamMailbox* peer, StreamControl* control,
                                                stream_steps::Receive receive, StreamControl::Report* report) {
  __shared__ stream_steps::Decision decision;
  if (threadIdx.x == 0) stream_steps::start_receive<GpuThread>(*own, *peer, *control, receive);
  __syncthreads();
  stream_steps::finish_receive<GpuThread>(*own, *control, report, decision);
}
