#pragma once

#include <cstdint>

#include "ops/courier/desk.h"

namespace brant::courier {

/// A thread of the courier's kernel on a GPU, and how it copies.
class CudaMachine : public simt::GpuThread {
 public:
  /// Looks of the dispatcher for each look at the clock, which costs as much.
  static constexpr unsigned kLooksPerClock = 8;

  /// Warp and warps mean nothing to the dispatcher.
  __device__ CudaMachine(bool by_model, unsigned warp_in_group, unsigned group_warps)
      : by_model_(by_model), warp_(warp_in_group), warps_(group_warps) {}

  __device__ __forceinline__ void lock(std::uint64_t* word) {
    GpuThread::lock(word);
    if (by_model_) fence_block();
  }
  __device__ __forceinline__ void unlock(std::uint64_t* word) {
    if (by_model_) fence_block();
    GpuThread::unlock(word);
  }
  /// The last of several groups has counted the others: what they wrote is in front of what it will.
  __device__ __forceinline__ void fence_counted() {
    if (by_model_) fence_system();
  }
  /// On both sides of a ring of parts: what was there before the order is there for whoever copies.
  __device__ __forceinline__ void fence_parts() {
    if (by_model_) fence_device();
  }

  __device__ __forceinline__ bool leads() const { return warp_ == 0; }
  __device__ __forceinline__ void group_sync() { asm volatile("bar.sync 1, %0;" ::"r"(warps_ * 32) : "memory"); }

  __device__ __forceinline__ std::uint64_t now_ns() { return uniform(GpuThread::now_ns()); }
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
  static constexpr unsigned kAtOnce = 4;  ///< Loads a lane has under way; with more of them registers would spill.
  static constexpr std::uint32_t kPiece = 32 * 16 * kAtOnce;

  __device__ __forceinline__ void copy(std::uint64_t to, std::uint64_t from, std::uint32_t bytes) {
    if (bytes == 8 && (to | from) % 8 == 0) {
      if (lane() == 0) *reinterpret_cast<std::uint64_t*>(to) = __ldcg(reinterpret_cast<const std::uint64_t*>(from));
      return;
    }
    const std::uint32_t done = (to | from) % 16 == 0 ? copy_as<uint4, kAtOnce>(lane(), to, from, bytes) : 0;
    if (done < bytes) copy_slowly(lane(), to + done, from + done, bytes - done);
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
  const unsigned warp_;
  const unsigned warps_;
};

}  // namespace brant::courier
