#include "base/atomic_word.h"
#include "ops/rma/atomic_orders.h"

namespace {

/// A thread of a GPU, of system scope: other devices work on the same word, over NVLink.
struct GpuAccess {
  template <typename T>
  static __device__ __forceinline__ T load(const T* word) {
    const T value = *const_cast<const volatile T*>(word);
    __threadfence_system();
    return value;
  }
  template <typename T>
  static __device__ __forceinline__ void store(T* word, T value) {
    __threadfence_system();
    *const_cast<volatile T*>(word) = value;
  }

  /// What CUDA calls a word of so many bits.
  template <typename T>
  using Cuda =
      std::conditional_t<std::is_floating_point_v<T>, T,
                         std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int, unsigned>,
                                            std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>>>;
  template <typename T>
  static __device__ __forceinline__ Cuda<T>* at(T* word) {
    return reinterpret_cast<Cuda<T>*>(word);
  }
  /// What was done before is seen before it, what is done behind it behind it.
  template <typename T, typename Perform>
  static __device__ __forceinline__ T fenced(const Perform& perform) {
    __threadfence_system();
    const T before = static_cast<T>(perform());
    __threadfence_system();
    return before;
  }

  template <typename T>
  static __device__ __forceinline__ T exchange(T* word, T value) {
    return fenced<T>([&] { return atomicExch_system(at(word), static_cast<Cuda<T>>(value)); });
  }
  template <typename T>
  static __device__ __forceinline__ T compare_exchange(T* word, T expected, T desired) {
    return fenced<T>(
        [&] { return atomicCAS_system(at(word), static_cast<Cuda<T>>(expected), static_cast<Cuda<T>>(desired)); });
  }
  template <typename T>
  static __device__ __forceinline__ T add(T* word, T value) {
    return fenced<T>([&] { return atomicAdd_system(at(word), static_cast<Cuda<T>>(value)); });
  }
  template <typename T>
  static __device__ __forceinline__ T min(T* word, T value) {
    if constexpr (std::is_floating_point_v<T>) {
      return brant::update_word<GpuAccess>(word, [value](T before) { return value < before ? value : before; });
    } else {
      return fenced<T>([&] { return atomicMin_system(at(word), static_cast<Cuda<T>>(value)); });
    }
  }
  template <typename T>
  static __device__ __forceinline__ T max(T* word, T value) {
    if constexpr (std::is_floating_point_v<T>) {
      return brant::update_word<GpuAccess>(word, [value](T before) { return before < value ? value : before; });
    } else {
      return fenced<T>([&] { return atomicMax_system(at(word), static_cast<Cuda<T>>(value)); });
    }
  }
  template <typename T>
  static __device__ __forceinline__ T bit_and(T* word, T value) {
    return fenced<T>([&] { return atomicAnd_system(at(word), static_cast<Cuda<T>>(value)); });
  }
  template <typename T>
  static __device__ __forceinline__ T bit_or(T* word, T value) {
    return fenced<T>([&] { return atomicOr_system(at(word), static_cast<Cuda<T>>(value)); });
  }
  template <typename T>
  static __device__ __forceinline__ T bit_xor(T* word, T value) {
    return fenced<T>([&] { return atomicXor_system(at(word), static_cast<Cuda<T>>(value)); });
  }
};

}  // namespace

/// A thread for each order.
extern "C" __global__ void brant_atomics(const __grid_constant__ brant::AtomicOrders orders) {
  if (threadIdx.x >= orders.count) return;
  const brant::AtomicOrders::Order& order = orders.orders[threadIdx.x];
  *order.before = brant::perform_atomic<GpuAccess>(order.word, order.what);
}
