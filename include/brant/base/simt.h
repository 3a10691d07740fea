#pragma once

#ifndef __CUDACC_RTC__
#include <cstdint>
#endif

#ifndef __CUDACC__
#include <atomic>
#include <chrono>
#include <thread>
#endif

/// Marks functions of kernels that also run without a GPU: nvcc, or NVRTC, compiles them for the GPU, the C++ compiler
/// for CPU threads (emulated device, thread sanitizer, model checker). What differs is the Machine they are given.
#ifdef __CUDACC__
#define BRANT_DEVICE_CODE __device__ __forceinline__
#else
#define BRANT_DEVICE_CODE inline
#endif

/// The one shim between such code and what runs it. A Machine is one thread of one block: `GpuThread` on a GPU,
/// `CpuThread` on the CPU, and a thread of the model checker in tests (support/model/stepped_thread.h). Code that needs
/// more of its own (how it copies, say) derives from them. All of them offer, for words of 64 bits:
///
/// place      thread, threads, lane, block, blocks (one dimension each), sync_block, sync_block_any, last_block
/// warp       each, leading, any, sync_warp, uniform: `each` and the like give a lane an item of its own, everything
///            else is the same in all lanes
/// memory     load_relaxed, load_acquire, load_pair_acquire, store_relaxed, store_release: of system scope, for words
///            that CPUs or other devices see; fence_system; load_line, store_line: 16 bytes that are one access
/// `_device`  of device memory that other blocks write; add_acq_rel_device, store_release_device, fence_device
/// `_shared`  of the shared memory of the block (`_shared_uniform`: one value for all lanes); claim, lock, unlock;
///            fence_block
/// time       now_ns, pause (between two looks at memory), rest (the same, after many that found nothing),
///            kLooksPerCheck (looks at memory for each at the clock)
/// reach      what a device pointer is to this thread
namespace brant::simt {

#ifdef __CUDACC_RTC__
using Word = unsigned long;  ///< What std::uint64_t is with the compilers of the host; NVRTC has no headers.
#else
using Word = std::uint64_t;
#endif

/// Two neighbouring words of one load, aligned to 16 bytes.
struct Pair {
  Word first;
  Word second;
};

#ifdef __CUDACC__

__device__ __forceinline__ unsigned shared_address(const void* place) {
  return static_cast<unsigned>(__cvta_generic_to_shared(place));
}

/// A thread of a GPU. `pause` does nothing: looks take long enough. So many of them are 100 us or more: what is checked
/// then is in memory of the host, and while it is read the fences of all threads of the SM wait.
class GpuThread {
 public:
  static constexpr unsigned kLooksPerCheck = 256;

  __device__ __forceinline__ GpuThread() : lane_(threadIdx.x % 32) {}

  __device__ __forceinline__ unsigned thread() const { return threadIdx.x; }
  __device__ __forceinline__ unsigned threads() const { return blockDim.x; }
  __device__ __forceinline__ unsigned block() const { return blockIdx.x; }
  __device__ __forceinline__ unsigned blocks() const { return gridDim.x; }
  __device__ __forceinline__ void sync_block() { __syncthreads(); }
  /// The same, and whether any thread of the block says so.
  __device__ __forceinline__ bool sync_block_any(bool said) { return __syncthreads_or(said ? 1 : 0) != 0; }
  /// Of the thread that speaks for its block, once each. The last of them gets true, and has seen what all have done.
  __device__ __forceinline__ bool last_block(Word* done) {
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
  __device__ __forceinline__ Word uniform(Word value) { return __shfl_sync(~0u, value, 0); }

  __device__ __forceinline__ Word load_relaxed(const Word* from) {
    Word value;
    asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
  }
  __device__ __forceinline__ Word load_acquire(const Word* from) {
    Word value;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
  }
  __device__ __forceinline__ Pair load_pair_acquire(const Word* from) {
    Pair pair;
    asm volatile("ld.acquire.sys.v2.u64 {%0, %1}, [%2];" : "=l"(pair.first), "=l"(pair.second) : "l"(from) : "memory");
    return pair;
  }
  __device__ __forceinline__ void store_relaxed(Word* to, Word value) {
    asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
  }
  __device__ __forceinline__ void store_release(Word* to, Word value) {
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
  }
  __device__ __forceinline__ void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
  /// One access of 128 bits, aligned to 16 bytes, and no two of 64: v2.u64 promises nothing about the two together.
  __device__ __forceinline__ Pair load_line(const Word* from) {
    Pair pair;
    asm volatile("{ .reg .b128 line; ld.relaxed.sys.b128 line, [%2]; mov.b128 {%0, %1}, line; }"
                 : "=l"(pair.first), "=l"(pair.second)
                 : "l"(from)
                 : "memory");
    return pair;
  }
  __device__ __forceinline__ void store_line(Word* to, Pair pair) {
    asm volatile("{ .reg .b128 line; mov.b128 line, {%1, %2}; st.relaxed.sys.b128 [%0], line; }" ::"l"(to),
                 "l"(pair.first), "l"(pair.second)
                 : "memory");
  }

  __device__ __forceinline__ Word load_acquire_device(const Word* from) {
    Word value;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
  }
  __device__ __forceinline__ Pair load_pair_relaxed_device(const Word* from) {
    Pair pair;
    asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];" : "=l"(pair.first), "=l"(pair.second) : "l"(from) : "memory");
    return pair;
  }
  __device__ __forceinline__ Word add_device(Word* to, Word value) {
    Word before;
    asm volatile("atom.relaxed.gpu.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(to), "l"(value) : "memory");
    return before;
  }
  /// What this thread has seen goes before it, and it goes before what this thread does next.
  __device__ __forceinline__ Word add_acq_rel_device(Word* to, Word value) {
    Word before;
    asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(to), "l"(value) : "memory");
    return before;
  }
  __device__ __forceinline__ void store_release_device(Word* to, Word value) {
    asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
  }
  __device__ __forceinline__ void fence_device() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

  __device__ __forceinline__ Word load_shared(const Word* from) {
    Word value;
    asm volatile("ld.relaxed.cta.shared.u64 %0, [%1];" : "=l"(value) : "r"(shared_address(from)) : "memory");
    return value;
  }
  __device__ __forceinline__ Pair load_pair_shared(const Word* from) {
    Pair pair;
    asm volatile("ld.relaxed.cta.shared.v2.u64 {%0, %1}, [%2];"
                 : "=l"(pair.first), "=l"(pair.second)
                 : "r"(shared_address(from))
                 : "memory");
    return pair;
  }
  __device__ __forceinline__ Word load_shared_uniform(const Word* from) { return uniform(load_shared(from)); }
  __device__ __forceinline__ void store_shared(Word* to, Word value) {
    asm volatile("st.relaxed.cta.shared.u64 [%0], %1;" ::"r"(shared_address(to)), "l"(value) : "memory");
  }
  /// True if the word was `from` and now is `to`.
  __device__ __forceinline__ bool claim(Word* word, Word from, Word to) {
    Word before = 0;
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
  __device__ __forceinline__ void lock(Word* word) {
    while (!claim(word, 0, 1)) {
    }
  }
  __device__ __forceinline__ void unlock(Word* word) {
    __syncwarp();
    if (lane_ == 0) store_shared(word, 0);
  }
  __device__ __forceinline__ void fence_block() { asm volatile("fence.acq_rel.cta;" ::: "memory"); }

  __device__ __forceinline__ Word now_ns() {
    Word now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
  }
  __device__ __forceinline__ void pause() {}
  __device__ __forceinline__ void rest() { asm volatile("nanosleep.u32 %0;" ::"r"(64u)); }
  /// One address space for all.
  template <typename T>
  __device__ __forceinline__ T* reach(T* pointer) {
    return pointer;
  }

 private:
  const unsigned lane_;
};

#else

/// The part of a Machine that is the same wherever a block is one thread, which does the items of all lanes in turn.
class BlockOfOne {
 public:
  [[nodiscard]] unsigned thread() const noexcept { return 0; }
  [[nodiscard]] unsigned threads() const noexcept { return 1; }
  void sync_block() noexcept {}
  [[nodiscard]] bool sync_block_any(bool said) const noexcept { return said; }
  [[nodiscard]] unsigned lane() const noexcept { return 0; }

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
  [[nodiscard]] Word uniform(Word value) const noexcept { return value; }
};

/// A CPU thread. Stores release and loads acquire, which is all that the fences are for; the thread sanitizer does not
/// know fences, and watches this instead. (That the fences stand where they must is the model checker's part.)
class CpuThread : public BlockOfOne {
 public:
  static constexpr unsigned kLooksPerCheck = 32;

  /// Null for what the device does not reach.
  using Reach = void* (*)(void* device_pointer) noexcept;

  explicit CpuThread(Reach by, unsigned block = 0, unsigned blocks = 1) noexcept
      : reach_(by), block_(block), blocks_(blocks) {}

  [[nodiscard]] unsigned block() const noexcept { return block_; }
  [[nodiscard]] unsigned blocks() const noexcept { return blocks_; }
  bool last_block(Word* done) noexcept {
    if (blocks_ == 1) return true;
    if (add_device(done, 1) + 1 != blocks_) return false;
    store_relaxed(done, 0);
    return true;
  }

  Word load_acquire(const Word* from) const noexcept {
    return std::atomic_ref(*const_cast<Word*>(from)).load(std::memory_order_acquire);
  }
  void store_release(Word* to, Word value) noexcept { std::atomic_ref(*to).store(value, std::memory_order_release); }
  Word load_relaxed(const Word* from) const noexcept { return load_acquire(from); }
  Pair load_pair_acquire(const Word* from) const noexcept { return {load_acquire(from), load_acquire(from + 1)}; }
  void store_relaxed(Word* to, Word value) noexcept { store_release(to, value); }
  void fence_system() noexcept {}
  /// Two accesses, the first word behind the second one: who sees the first has the second, or a later one.
  Pair load_line(const Word* from) const noexcept { return load_pair_acquire(from); }
  void store_line(Word* to, Pair pair) noexcept {
    store_relaxed(to + 1, pair.second);
    store_release(to, pair.first);
  }

  Word load_acquire_device(const Word* from) const noexcept { return load_acquire(from); }
  Pair load_pair_relaxed_device(const Word* from) const noexcept { return load_pair_acquire(from); }
  Word add_device(Word* to, Word value) noexcept {
    return std::atomic_ref(*to).fetch_add(value, std::memory_order_acq_rel);
  }
  Word add_acq_rel_device(Word* to, Word value) noexcept { return add_device(to, value); }
  void store_release_device(Word* to, Word value) noexcept { store_release(to, value); }
  void fence_device() noexcept {}

  Word load_shared(const Word* from) const noexcept { return load_acquire(from); }
  Pair load_pair_shared(const Word* from) const noexcept { return load_pair_acquire(from); }
  Word load_shared_uniform(const Word* from) const noexcept { return load_acquire(from); }
  void store_shared(Word* to, Word value) noexcept { store_release(to, value); }
  bool claim(Word* word, Word from, Word to) noexcept {
    return std::atomic_ref(*word).compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }
  void lock(Word* word) noexcept {
    while (!claim(word, 0, 1)) pause();
  }
  void unlock(Word* word) noexcept { store_release(word, 0); }
  void fence_block() noexcept {}

  [[nodiscard]] Word now_ns() const noexcept {
    return static_cast<Word>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
  }
  void pause() noexcept { std::this_thread::yield(); }
  void rest() noexcept { std::this_thread::yield(); }
  template <typename T>
  T* reach(T* pointer) const noexcept {
    return static_cast<T*>(reach_(const_cast<void*>(static_cast<const void*>(pointer))));
  }

 private:
  const Reach reach_;
  const unsigned block_;
  const unsigned blocks_;
};

#endif

}  // namespace brant::simt
