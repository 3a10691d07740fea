#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>
#endif

namespace brant {

/// Which words of bells somebody waits for, in lines of 128 bytes that a device writes and this thread reads. Where
/// none has rung, a scan costs a subtraction for two words: 4096 bells take less than a microsecond.
class ArmedLines {
 public:
  static constexpr std::size_t kWords = 16;  ///< Of a line.

  /// The words stay the caller's. Throws bad_alloc.
  ArmedLines(std::uint64_t* words, std::size_t lines) : words_(words), lines_(lines), armed_in_((lines + 63) / 64) {}

  /// From now on a scan tells when the word reaches the epoch, again and again until it is armed anew or disarmed.
  void arm(std::size_t word, std::uint64_t epoch) noexcept {
    Line& line = lines_[word / kWords];
    const auto bit = static_cast<std::uint16_t>(1u << word % kWords);
    if (line.armed == 0) {
      park(word / kWords);
      armed_in_[word / kWords / 64] |= std::uint64_t{1} << word / kWords % 64;
    }
    if ((line.armed & bit) == 0) ++armed_;
    line.armed |= bit;
    line.wanted[word % kWords] = epoch;
  }
  void disarm(std::size_t word) noexcept {
    Line& line = lines_[word / kWords];
    const auto bit = static_cast<std::uint16_t>(1u << word % kWords);
    if ((line.armed & bit) == 0) return;
    --armed_;
    line.armed = static_cast<std::uint16_t>(line.armed & ~bit);
    line.wanted[word % kWords] = never(word);
    if (line.armed == 0) armed_in_[word / kWords / 64] &= ~(std::uint64_t{1} << word / kWords % 64);
  }
  [[nodiscard]] std::size_t armed() const noexcept { return armed_; }
  /// What was written before this epoch is there.
  [[nodiscard]] std::uint64_t seen(std::size_t word) const noexcept {
    return std::atomic_ref(words_[word]).load(std::memory_order_acquire);
  }

  /// Calls rung(word) for armed words that have reached their epochs; that may arm and disarm. Returns how many.
  template <typename Rung>
  unsigned scan(Rung&& rung) noexcept {
    unsigned events = 0;
    for (std::size_t i = 0; i < armed_in_.size(); ++i) {
      for (std::uint64_t left = armed_in_[i]; left != 0; left &= left - 1) {
        const std::size_t number = i * 64 + static_cast<std::size_t>(std::countr_zero(left));
        if (all_silent(number)) [[likely]]
          continue;
        for (unsigned bits = lines_[number].armed; bits != 0; bits &= bits - 1) {
          const std::size_t word = number * kWords + static_cast<std::size_t>(std::countr_zero(bits));
          if (!reached(seen(word), lines_[number].wanted[word % kWords])) continue;
          rung(word);
          ++events;
        }
      }
    }
    return events;
  }

  [[nodiscard]] static bool reached(std::uint64_t seen, std::uint64_t wanted) noexcept {
    return static_cast<std::int64_t>(seen - wanted) >= 0;
  }

 private:
  struct alignas(16) Line {
    std::array<std::uint64_t, kWords> wanted{};  ///< Of words that are not armed, one that is not reached.
    std::uint16_t armed = 0;                     ///< A bit for each word.
  };

  [[nodiscard]] std::uint64_t never(std::size_t word) const noexcept { return seen(word) + (std::uint64_t{1} << 62); }
  void park(std::size_t line) noexcept {
    for (std::size_t i = 0; i < kWords; ++i) lines_[line].wanted[i] = never(line * kWords + i);
  }

  /// None of the line's words has reached what is wanted of it. Words of 8 bytes that are written whole are read whole,
  /// two at a time; what is found is looked at again, with the order of an acquire.
  [[nodiscard]] bool all_silent(std::size_t number) const noexcept {
    const std::uint64_t* const seen_words = words_ + number * kWords;
    const Line& line = lines_[number];
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
    std::atomic_signal_fence(std::memory_order_seq_cst);  // they are read anew by each scan
    __m128i silent = _mm_set1_epi8(-1);
    for (std::size_t i = 0; i < kWords; i += 2) {
      const __m128i there = _mm_load_si128(reinterpret_cast<const __m128i*>(seen_words + i));
      const __m128i wanted = _mm_load_si128(reinterpret_cast<const __m128i*>(&line.wanted[i]));
      silent = _mm_and_si128(silent, _mm_sub_epi64(there, wanted));
    }
    return _mm_movemask_pd(_mm_castsi128_pd(silent)) == 3;
#else
    for (std::size_t i = 0; i < kWords; ++i) {
      const auto there = std::atomic_ref(const_cast<std::uint64_t&>(seen_words[i])).load(std::memory_order_relaxed);
      if (reached(there, line.wanted[i])) return false;
    }
    return true;
#endif
  }

  std::uint64_t* const words_;
  std::vector<Line> lines_;
  std::vector<std::uint64_t> armed_in_;  ///< A bit for each line in which words are armed.
  std::size_t armed_ = 0;
};

}  // namespace brant
