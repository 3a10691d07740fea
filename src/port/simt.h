#pragma once

#include <cstdint>

#ifndef __CUDACC__
#include <atomic>
#include <chrono>
#include <exception>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>
#endif

/// Marks functions of kernels that also run without a GPU: nvcc compiles them for the GPU, the C++ compiler for CPU
/// threads (emulated device, thread sanitizer, model checker). What differs is the Machine they are given.
#ifdef __CUDACC__
#define BRANT_DEVICE_CODE __device__ __forceinline__
#else
#define BRANT_DEVICE_CODE inline
#endif

/// The one shim between such code and what runs it. A Machine is one thread of one block: `GpuThread` on a GPU,
/// `CpuThread` on the CPU, and a thread of the model checker in tests (support/model/stepped_thread.h). Code that needs
/// more of its own (how it copies, say) derives from them. All of them offer, for words of 64 bits:
///
/// place      thread, threads, block, blocks (one dimension each), sync_block, last_block
/// warp       each, leading, any, sync_warp, uniform: `each` and the like give a lane an item of its own, everything
///            else is the same in all lanes
/// memory     load_relaxed, load_acquire, load_pair_acquire, store_relaxed, store_release: of system scope, for words
///            that CPUs or other devices see; fence_system
/// `_device`  of device memory that other blocks write; fence_device
/// `_shared`  of the shared memory of the block (`_shared_uniform`: one value for all lanes); claim, lock, unlock;
///            fence_block
/// time       now_ns, pause (between two looks at memory)
/// reach      what a device pointer is to this thread
namespace brant::simt {

/// Two neighbouring words of one load, aligned to 16 bytes.
struct Pair {
  std::uint64_t first;
  std::uint64_t second;
};

#ifdef __CUDACC__

/// A thread of a GPU. `pause` does nothing: looks take long enough.
class GpuThread {
 public:
  __device__ __forceinline__ GpuThread() : lane_(threadIdx.x % 32) {}

  __device__ __forceinline__ unsigned thread() const { return threadIdx.x; }
  __device__ __forceinline__ unsigned threads() const { return blockDim.x; }
  __device__ __forceinline__ unsigned block() const { return blockIdx.x; }
  __device__ __forceinline__ unsigned blocks() const { return gridDim.x; }
  __device__ __forceinline__ void sync_block() { __syncthreads(); }
  /// Of the thread that speaks for its block, once each. The last of them gets true, and has seen what all have done.
  __device__ __forceinline__ bool last_block(std::uint64_t* done) {
    if (gridDim.x == 1) return true;
    __threadfence_system();
    auto* count = reinterpret_cast<unsigned long long*>(done);
    if (atomicAdd(count, 1ull) + 1 != gridDim.x) return false;
    __threadfence_system();
    *done = 0;
    return true;
  }

  __device__ __forceinline__ unsigned lane() const { return lane_; }
  template <typename Each>
  __device__ __forceinline__ void each(unsigned count, Each&& item) {
    for (unsigned i = lane_; i < count; i += 32) item(i);
  }
  template <typename Test>
  __device__ __forceinline__ unsigned leading(unsigned count, Test&& test) {
    const bool good = lane_ < count && test(lane_);
    const unsigned bad = ~__ballot_sync(~0u, good);
    return bad == 0 ? 32 : static_cast<unsigned>(__ffs(static_cast<int>(bad))) - 1;
  }
  template <typename Test>
  __device__ __forceinline__ bool any(unsigned count, Test&& test) {
    const bool found = lane_ < count && test(lane_);
    return __any_sync(~0u, found) != 0;
  }
  __device__ __forceinline__ void sync_warp() { __syncwarp(); }
  __device__ __forceinline__ std::uint64_t uniform(std::uint64_t value) { return __shfl_sync(~0u, value, 0); }

  __device__ __forceinline__ std::uint64_t load_relaxed(const std::uint64_t* from) {
    std::uint64_t value;
    asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
  }
  __device__ __forceinline__ std::uint64_t load_acquire(const std::uint64_t* from) {
    std::uint64_t value;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
  }
  __device__ __forceinline__ Pair load_pair_acquire(const std::uint64_t* from) {
    Pair pair;
    asm volatile("ld.acquire.sys.v2.u64 {%0, %1}, [%2];" : "=l"(pair.first), "=l"(pair.second) : "l"(from) : "memory");
    return pair;
  }
  __device__ __forceinline__ void store_relaxed(std::uint64_t* to, std::uint64_t value) {
    asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
  }
  __device__ __forceinline__ void store_release(std::uint64_t* to, std::uint64_t value) {
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
  }
  __device__ __forceinline__ void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

  __device__ __forceinline__ std::uint64_t load_acquire_device(const std::uint64_t* from) {
    std::uint64_t value;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
  }
  __device__ __forceinline__ Pair load_pair_relaxed_device(const std::uint64_t* from) {
    Pair pair;
    asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];" : "=l"(pair.first), "=l"(pair.second) : "l"(from) : "memory");
    return pair;
  }
  __device__ __forceinline__ std::uint64_t add_device(std::uint64_t* to, std::uint64_t value) {
    std::uint64_t before;
    asm volatile("atom.relaxed.gpu.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(to), "l"(value) : "memory");
    return before;
  }
  __device__ __forceinline__ void fence_device() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

  __device__ __forceinline__ std::uint64_t load_shared(const std::uint64_t* from) {
    std::uint64_t value;
    asm volatile("ld.relaxed.cta.shared.u64 %0, [%1];" : "=l"(value) : "r"(shared_address(from)) : "memory");
    return value;
  }
  __device__ __forceinline__ Pair load_pair_shared(const std::uint64_t* from) {
    Pair pair;
    asm volatile("ld.relaxed.cta.shared.v2.u64 {%0, %1}, [%2];"
                 : "=l"(pair.first), "=l"(pair.second)
                 : "r"(shared_address(from))
                 : "memory");
    return pair;
  }
  __device__ __forceinline__ std::uint64_t load_shared_uniform(const std::uint64_t* from) {
    return uniform(load_shared(from));
  }
  __device__ __forceinline__ void store_shared(std::uint64_t* to, std::uint64_t value) {
    asm volatile("st.relaxed.cta.shared.u64 [%0], %1;" ::"r"(shared_address(to)), "l"(value) : "memory");
  }
  /// True if the word was `from` and now is `to`.
  __device__ __forceinline__ bool claim(std::uint64_t* word, std::uint64_t from, std::uint64_t to) {
    std::uint64_t before = 0;
    if (lane_ == 0) {
      asm volatile("atom.relaxed.cta.shared.cas.b64 %0, [%1], %2, %3;"
                   : "=l"(before)
                   : "r"(shared_address(word)), "l"(from), "l"(to)
                   : "memory");
    }
    return uniform(before) == from;
  }
  /// Between the warps of a block, for what is in its shared memory, which keeps the order of all of them: an acquire
  /// would wait for their reads of host memory.
  __device__ __forceinline__ void lock(std::uint64_t* word) {
    while (!claim(word, 0, 1)) {
    }
  }
  __device__ __forceinline__ void unlock(std::uint64_t* word) {
    __syncwarp();
    if (lane_ == 0) store_shared(word, 0);
  }
  __device__ __forceinline__ void fence_block() { asm volatile("fence.acq_rel.cta;" ::: "memory"); }

  __device__ __forceinline__ std::uint64_t now_ns() {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
  }
  __device__ __forceinline__ void pause() {}
  /// One address space for all.
  template <typename T>
  __device__ __forceinline__ T* reach(T* pointer) {
    return pointer;
  }

 private:
  static __device__ __forceinline__ std::uint32_t shared_address(const void* place) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(place));
  }

  const unsigned lane_;
};

#else

/// The part of a Machine that is the same wherever a block is one thread, which does the items of all lanes in turn.
class BlockOfOne {
 public:
  [[nodiscard]] unsigned thread() const noexcept { return 0; }
  [[nodiscard]] unsigned threads() const noexcept { return 1; }
  void sync_block() noexcept {}

  template <typename Each>
  void each(unsigned count, Each&& item) {
    for (unsigned i = 0; i < count; ++i) item(i);
  }
  template <typename Test>
  unsigned leading(unsigned count, Test&& test) {
    unsigned i = 0;
    while (i < count && test(i)) ++i;
    return i;
  }
  template <typename Test>
  bool any(unsigned count, Test&& test) {
    bool found = false;
    for (unsigned i = 0; i < count; ++i) found = test(i) || found;
    return found;
  }
  void sync_warp() noexcept {}
  [[nodiscard]] std::uint64_t uniform(std::uint64_t value) const noexcept { return value; }
};

/// A CPU thread. Stores release and loads acquire, which is all that the fences are for; the thread sanitizer does not
/// know fences, and watches this instead. (That the fences stand where they must is the model checker's part.)
class CpuThread : public BlockOfOne {
 public:
  /// Null for what the device does not reach.
  using Reach = void* (*)(void* device_pointer) noexcept;

  explicit CpuThread(Reach by, unsigned block = 0, unsigned blocks = 1) noexcept
      : reach_(by), block_(block), blocks_(blocks) {}

  [[nodiscard]] unsigned block() const noexcept { return block_; }
  [[nodiscard]] unsigned blocks() const noexcept { return blocks_; }
  bool last_block(std::uint64_t* done) noexcept {
    if (blocks_ == 1) return true;
    if (add_device(done, 1) + 1 != blocks_) return false;
    store_relaxed(done, 0);
    return true;
  }

  std::uint64_t load_acquire(const std::uint64_t* from) const noexcept {
    return std::atomic_ref(*const_cast<std::uint64_t*>(from)).load(std::memory_order_acquire);
  }
  void store_release(std::uint64_t* to, std::uint64_t value) noexcept {
    std::atomic_ref(*to).store(value, std::memory_order_release);
  }
  std::uint64_t load_relaxed(const std::uint64_t* from) const noexcept { return load_acquire(from); }
  Pair load_pair_acquire(const std::uint64_t* from) const noexcept {
    return {load_acquire(from), load_acquire(from + 1)};
  }
  void store_relaxed(std::uint64_t* to, std::uint64_t value) noexcept { store_release(to, value); }
  void fence_system() noexcept {}

  std::uint64_t load_acquire_device(const std::uint64_t* from) const noexcept { return load_acquire(from); }
  Pair load_pair_relaxed_device(const std::uint64_t* from) const noexcept { return load_pair_acquire(from); }
  std::uint64_t add_device(std::uint64_t* to, std::uint64_t value) noexcept {
    return std::atomic_ref(*to).fetch_add(value, std::memory_order_acq_rel);
  }
  void fence_device() noexcept {}

  std::uint64_t load_shared(const std::uint64_t* from) const noexcept { return load_acquire(from); }
  Pair load_pair_shared(const std::uint64_t* from) const noexcept { return load_pair_acquire(from); }
  std::uint64_t load_shared_uniform(const std::uint64_t* from) const noexcept { return load_acquire(from); }
  void store_shared(std::uint64_t* to, std::uint64_t value) noexcept { store_release(to, value); }
  bool claim(std::uint64_t* word, std::uint64_t from, std::uint64_t to) noexcept {
    return std::atomic_ref(*word).compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }
  void lock(std::uint64_t* word) noexcept {
    while (!claim(word, 0, 1)) pause();
  }
  void unlock(std::uint64_t* word) noexcept { store_release(word, 0); }
  void fence_block() noexcept {}

  [[nodiscard]] std::uint64_t now_ns() const noexcept {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  }
  void pause() noexcept { std::this_thread::yield(); }
  template <typename T>
  T* reach(T* pointer) const noexcept {
    return static_cast<T*>(reach_(const_cast<void*>(static_cast<const void*>(pointer))));
  }

 private:
  const Reach reach_;
  const unsigned block_;
  const unsigned blocks_;
};

/// Runs body(0) to body(count - 1) at once, the first on this thread and each other on one of its own, and returns when
/// all have ended. None begins before all have a thread, since they may wait for one another: false, and none has run,
/// where there are not enough threads.
template <typename Body>
bool run_at_once(unsigned count, const Body& body) noexcept {
  std::latch all_there(1);
  std::atomic<bool> go = false;
  std::vector<std::jthread> others;
  try {
    others.reserve(count);
    for (unsigned i = 1; i < count; ++i) {
      others.emplace_back([&, i] {
        all_there.wait();
        if (go.load(std::memory_order_relaxed)) body(i);
      });
    }
    go.store(true, std::memory_order_relaxed);
  } catch (const std::exception&) {
    all_there.count_down();
    return false;  // those that are there end without having begun
  }
  all_there.count_down();
  body(0);
  return true;
}

#endif

}  // namespace brant::simt
