#pragma once

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace brant::port {

/// Writes a word of a host window (`Device::open_host_window`) behind all that this thread has written before, and
/// sends it off: the CPU gathers writes to such memory, and orders them with nothing else.
inline void store_to_window(std::uint64_t& word, std::uint64_t value) noexcept {
#if defined(__x86_64__)
  _mm_sfence();
  std::atomic_ref(word).store(value, std::memory_order_release);
  _mm_sfence();
#elif defined(__aarch64__)
  asm volatile("dsb st" ::: "memory");
  std::atomic_ref(word).store(value, std::memory_order_release);
  asm volatile("dsb st" ::: "memory");
#else
  std::atomic_ref(word).store(value, std::memory_order_seq_cst);
#endif
}

}  // namespace brant::port
