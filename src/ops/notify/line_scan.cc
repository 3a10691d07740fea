#include "ops/notify/line_scan.h"

#include <array>
#include <atomic>
#include <bit>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define BRANT_WIDE_LOOKS 1
#include <immintrin.h>
#else
#define BRANT_WIDE_LOOKS 0
#endif

namespace brant::line_scan {
namespace {

std::uint64_t look_word_by_word(const std::uint64_t* words, const std::uint64_t* wanted, std::uint64_t of) {
  std::uint64_t loud = 0;
  for (std::uint64_t left = of; left != 0; left &= left - 1) {
    const auto number = static_cast<std::size_t>(std::countr_zero(left));
    for (std::size_t i = number * kWords; i < (number + 1) * kWords; ++i) {
      const auto seen = std::atomic_ref(const_cast<std::uint64_t&>(words[i])).load(std::memory_order_relaxed);
      if (static_cast<std::int64_t>(seen - wanted[i]) >= 0) loud |= left & -left;
    }
  }
  return loud;
}

#if BRANT_WIDE_LOOKS

// A difference that is negative in all words: the sign of all differences together. The fences: words are read anew by
// each look, whatever the compiler knows of earlier ones.

std::uint64_t look_by_two(const std::uint64_t* words, const std::uint64_t* wanted, std::uint64_t of) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::uint64_t loud = 0;
  for (std::uint64_t left = of; left != 0; left &= left - 1) {
    const auto first = static_cast<std::size_t>(std::countr_zero(left)) * kWords;
    __m128i silent = _mm_set1_epi8(-1);
    for (std::size_t i = first; i < first + kWords; i += 2) {
      const __m128i there = _mm_loadu_si128(reinterpret_cast<const __m128i*>(words + i));
      const __m128i hoped = _mm_loadu_si128(reinterpret_cast<const __m128i*>(wanted + i));
      silent = _mm_and_si128(silent, _mm_sub_epi64(there, hoped));
    }
    if (_mm_movemask_pd(_mm_castsi128_pd(silent)) != 3) loud |= left & -left;
  }
  return loud;
}

__attribute__((target("avx2"))) std::uint64_t look_by_four(const std::uint64_t* words, const std::uint64_t* wanted,
                                                           std::uint64_t of) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::uint64_t loud = 0;
  for (std::uint64_t left = of; left != 0; left &= left - 1) {
    const auto first = static_cast<std::size_t>(std::countr_zero(left)) * kWords;
    __m256i silent = _mm256_set1_epi8(-1);
    for (std::size_t i = first; i < first + kWords; i += 4) {
      const __m256i there = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + i));
      const __m256i hoped = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(wanted + i));
      silent = _mm256_and_si256(silent, _mm256_sub_epi64(there, hoped));
    }
    if (_mm256_movemask_pd(_mm256_castsi256_pd(silent)) != 15) loud |= left & -left;
  }
  return loud;
}

__attribute__((target("avx512f"))) std::uint64_t look_by_eight(const std::uint64_t* words, const std::uint64_t* wanted,
                                                               std::uint64_t of) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const __m512i sign = _mm512_set1_epi64(INT64_MIN);
  std::uint64_t loud = 0;
  for (std::uint64_t left = of; left != 0; left &= left - 1) {
    const auto first = static_cast<std::size_t>(std::countr_zero(left)) * kWords;
    const __m512i low = _mm512_sub_epi64(_mm512_loadu_si512(words + first), _mm512_loadu_si512(wanted + first));
    const __m512i high =
        _mm512_sub_epi64(_mm512_loadu_si512(words + first + 8), _mm512_loadu_si512(wanted + first + 8));
    if (_mm512_test_epi64_mask(_mm512_and_si512(low, high), sign) != 0xff) loud |= left & -left;
  }
  return loud;
}

#endif

}  // namespace

std::span<const Way> ways() noexcept {
#if BRANT_WIDE_LOOKS
  static constexpr std::array<Way, 4> kWays{{{"word by word", &look_word_by_word},
                                             {"two words", &look_by_two},
                                             {"four words", &look_by_four},
                                             {"eight words", &look_by_eight}}};
  const std::size_t count = __builtin_cpu_supports("avx512f") != 0 ? 4 : __builtin_cpu_supports("avx2") != 0 ? 3 : 2;
#else
  static constexpr std::array<Way, 1> kWays{{{"word by word", &look_word_by_word}}};
  const std::size_t count = 1;
#endif
  return std::span(kWays).first(count);
}

}  // namespace brant::line_scan
