#pragma once

#include <cstdint>

#include "ops/courier/desk.h"

namespace brant::courier {

/// How the courier's code does things on a GPU. Every thread of a warp runs it; `each`, `leading` and `any` give a lane
/// an item of its own, everything else is the same in all lanes.
class CudaMachine {
 public:
  struct Pair {
    std::uint64_t first;
    std::uint64_t second;
  };

  /// Looks of the dispatcher for each look at the clock, which costs as much.
  static constexpr unsigned kLooksPerClock = 8;

  /// Warp and warps mean nothing to the dispatcher.
  __device__ CudaMachine(bool by_model, unsigned warp_in_group, unsigned group_warps)
      : by_model_(by_model), lane_(threadIdx.x % 32), warp_(warp_in_group), warps_(group_warps) {}

  __device__ __forceinline__ void store(std::uint64_t* to, std::uint64_t value) {
    asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
  }
  __device__ __forceinline__ std::uint64_t load(const std::uint64_t* from) {
    std::uint64_t value;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
  }
  __device__ __forceinline__ Pair load_pair(const std::uint64_t* from) {
    Pair pair;
    asm volatile("ld.acquire.sys.v2.u64 {%0, %1}, [%2];" : "=l"(pair.first), "=l"(pair.second) : "l"(from) : "memory");
    return pair;
  }
  /// Of device memory that other blocks write. What an entry names is read through the second cache, at an address
  /// from the entry: nothing older than the entry can come of it, and an acquire would cost a look as much again.
  __device__ __forceinline__ Pair load_pair_of_device(const std::uint64_t* from) {
    Pair pair;
    asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];" : "=l"(pair.first), "=l"(pair.second) : "l"(from) : "memory");
    return pair;
  }
  /// Of memory that only this block touches; "near": the same for all lanes.
  __device__ __forceinline__ Pair load_pair_here(const std::uint64_t* from) {
    Pair pair;
    asm volatile("ld.relaxed.cta.shared.v2.u64 {%0, %1}, [%2];"
                 : "=l"(pair.first), "=l"(pair.second)
                 : "r"(shared_address(from))
                 : "memory");
    return pair;
  }
  __device__ __forceinline__ std::uint64_t load_here(const std::uint64_t* from) {
    std::uint64_t value;
    asm volatile("ld.relaxed.cta.shared.u64 %0, [%1];" : "=l"(value) : "r"(shared_address(from)) : "memory");
    return value;
  }
  __device__ __forceinline__ std::uint64_t load_near(const std::uint64_t* from) { return uniform(load_here(from)); }
  __device__ __forceinline__ void store_near(std::uint64_t* to, std::uint64_t value) {
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
    if (by_model_) asm volatile("fence.acq_rel.cta;" ::: "memory");
  }
  __device__ __forceinline__ void unlock(std::uint64_t* word) {
    if (by_model_) asm volatile("fence.acq_rel.cta;" ::: "memory");
    __syncwarp();
    if (lane_ == 0) store_near(word, 0);
  }
  __device__ __forceinline__ std::uint64_t add(std::uint64_t* to, std::uint64_t value) {
    std::uint64_t before;
    asm volatile("atom.relaxed.gpu.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(to), "l"(value) : "memory");
    return before;
  }
  __device__ __forceinline__ void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
  /// The last of several groups has counted the others: what they wrote is in front of what it will.
  __device__ __forceinline__ void fence_counted() {
    if (by_model_) fence_system();
  }
  /// On both sides of a ring of parts: what was there before the order is there for whoever copies.
  __device__ __forceinline__ void fence_parts() {
    if (by_model_) asm volatile("fence.acq_rel.gpu;" ::: "memory");
  }

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

  __device__ __forceinline__ bool leads() const { return warp_ == 0; }
  __device__ __forceinline__ void group_sync() { asm volatile("bar.sync 1, %0;" ::"r"(warps_ * 32) : "memory"); }

  __device__ __forceinline__ std::uint64_t now_ns() {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return uniform(now);
  }
  /// Looks take long enough.
  __device__ __forceinline__ void pause() {}

  __device__ __forceinline__ std::uint64_t* word_at(std::uint64_t address) {
    return reinterpret_cast<std::uint64_t*>(address);
  }
  __device__ __forceinline__ bool faulted() const { return false; }

  __device__ __forceinline__ void copy_by_warp(std::uint64_t to, std::uint64_t from, std::uint32_t bytes) {
    copy(to, from, bytes);
    __syncwarp();
  }

  /// Pieces of one pass of a warp each, dealt out in turn.
  __device__ __forceinline__ void copy_by_group(const PartRing::Entry* parts, unsigned count) {
    unsigned turn = warp_;
    for (unsigned i = 0; i < count; ++i) {
      const std::uint64_t to = parts[i].words[OrderWords::to];
      const std::uint64_t from = parts[i].words[OrderWords::from];
      const std::uint32_t bytes = bytes_of(parts[i]);
      const unsigned pieces = (bytes + kPiece - 1) / kPiece;
      for (; turn < pieces; turn += warps_) {
        const std::uint32_t begin = turn * kPiece;
        copy(to + begin, from + begin, bytes - begin < kPiece ? bytes - begin : kPiece);
      }
      turn -= pieces;
    }
  }

 private:
  static __device__ __forceinline__ std::uint32_t shared_address(const void* place) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(place));
  }

  static constexpr unsigned kAtOnce = 4;  ///< Loads a lane has under way; with more of them registers would spill.
  static constexpr std::uint32_t kPiece = 32 * 16 * kAtOnce;

  __device__ __forceinline__ void copy(std::uint64_t to, std::uint64_t from, std::uint32_t bytes) {
    if (bytes == 8 && (to | from) % 8 == 0) {
      if (lane_ == 0) *reinterpret_cast<std::uint64_t*>(to) = __ldcg(reinterpret_cast<const std::uint64_t*>(from));
      return;
    }
    const std::uint32_t done = (to | from) % 16 == 0 ? copy_as<uint4, kAtOnce>(lane_, to, from, bytes) : 0;
    if (done < bytes) copy_slowly(lane_, to + done, from + done, bytes - done);
  }

  /// What does not go in 16 bytes. Apart, so that the loop above keeps its registers.
  static __device__ __noinline__ void copy_slowly(unsigned lane, std::uint64_t to, std::uint64_t from,
                                                  std::uint32_t bytes) {
    const std::uint64_t both = to | from;
    std::uint32_t done = 0;
    if (both % 8 == 0) {
      done = copy_as<std::uint64_t, 4>(lane, to, from, bytes);
    } else if (both % 4 == 0) {
      done = copy_as<std::uint32_t, 4>(lane, to, from, bytes);
    }
    if (done < bytes) copy_as<std::uint8_t, 4>(lane, to + done, from + done, bytes - done);
  }

  /// Past the first cache (`cg`): it is not kept coherent, and a resident kernel reads one address again and again.
  /// All loads of a round go out before the first store waits for one.
  template <typename T, unsigned kRound>
  static __device__ __forceinline__ std::uint32_t copy_as(unsigned lane, std::uint64_t to, std::uint64_t from,
                                                          std::uint32_t bytes) {
    T* const target = reinterpret_cast<T*>(to);
    const T* const source = reinterpret_cast<const T*>(from);
    const std::uint32_t count = bytes / sizeof(T);
    std::uint32_t first = lane;
    for (; first + 32 * (kRound - 1) < count; first += 32 * kRound) {
      T values[kRound];
#pragma unroll
      for (unsigned i = 0; i < kRound; ++i) values[i] = __ldcg(source + first + i * 32);
#pragma unroll
      for (unsigned i = 0; i < kRound; ++i) target[first + i * 32] = values[i];
    }
    T values[kRound];
#pragma unroll
    for (unsigned i = 0; i < kRound; ++i) {
      if (first + i * 32 < count) values[i] = __ldcg(source + first + i * 32);
    }
#pragma unroll
    for (unsigned i = 0; i < kRound; ++i) {
      if (first + i * 32 < count) target[first + i * 32] = values[i];
    }
    return count * static_cast<std::uint32_t>(sizeof(T));
  }

  const bool by_model_;  ///< See CourierOptions.
  const unsigned lane_;
  const unsigned warp_;
  const unsigned warps_;
};

}  // namespace brant::courier
