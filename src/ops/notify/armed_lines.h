#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/notify/line_scan.h"

namespace brant {

/// Which words of bells somebody waits for, in lines of 128 bytes that a device writes and this thread reads. Where
/// none has rung, a scan costs a subtraction for eight words, or for as many as the CPU has it: 4096 bells take less
/// than a microsecond.
class ArmedLines {
 public:
  static constexpr std::size_t kWords = line_scan::kWords;  ///< Of a line.

  /// The words stay the caller's; they are aligned to a line. Throws bad_alloc.
  ArmedLines(std::uint64_t* words, std::size_t lines, line_scan::LoudLines look = line_scan::ways().back().look)
      : look_(look), words_(words), wanted_(lines), armed_words_(lines), armed_in_((lines + 63) / 64) {}

  /// From now on a scan tells when the word reaches the epoch, again and again until it is armed anew or disarmed.
  void arm(std::size_t word, std::uint64_t epoch) noexcept {
    std::uint16_t& armed = armed_words_[word / kWords];
    const auto bit = static_cast<std::uint16_t>(1u << word % kWords);
    if (armed == 0) {
      park(word / kWords);
      armed_in_[word / kWords / 64] |= std::uint64_t{1} << word / kWords % 64;
    }
    if ((armed & bit) == 0) ++armed_;
    armed |= bit;
    wanted_of(word) = epoch;
  }
  void disarm(std::size_t word) noexcept {
    std::uint16_t& armed = armed_words_[word / kWords];
    const auto bit = static_cast<std::uint16_t>(1u << word % kWords);
    if ((armed & bit) == 0) return;
    --armed_;
    armed = static_cast<std::uint16_t>(armed & ~bit);
    wanted_of(word) = never(word);
    if (armed == 0) armed_in_[word / kWords / 64] &= ~(std::uint64_t{1} << word / kWords % 64);
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
      if (armed_in_[i] == 0) continue;
      std::uint64_t loud = look_(words_ + i * 64 * kWords, wanted_[i * 64].epochs.data(), armed_in_[i]);
      for (; loud != 0; loud &= loud - 1) {
        const std::size_t number = i * 64 + static_cast<std::size_t>(std::countr_zero(loud));
        for (unsigned bits = armed_words_[number]; bits != 0; bits &= bits - 1) {
          const std::size_t word = number * kWords + static_cast<std::size_t>(std::countr_zero(bits));
          if (!reached(seen(word), wanted_of(word))) continue;
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
  /// Of words that are not armed, one that is not reached.
  struct alignas(kWords * sizeof(std::uint64_t)) Wanted {
    std::array<std::uint64_t, kWords> epochs{};
  };

  [[nodiscard]] std::uint64_t never(std::size_t word) const noexcept { return seen(word) + (std::uint64_t{1} << 62); }
  [[nodiscard]] std::uint64_t& wanted_of(std::size_t word) noexcept {
    return wanted_[word / kWords].epochs[word % kWords];
  }
  void park(std::size_t line) noexcept {
    for (std::size_t word = line * kWords; word < (line + 1) * kWords; ++word) wanted_of(word) = never(word);
  }

  const line_scan::LoudLines look_;
  std::uint64_t* const words_;
  std::vector<Wanted> wanted_;
  std::vector<std::uint16_t> armed_words_;  ///< A bit for each word of a line.
  std::vector<std::uint64_t> armed_in_;     ///< A bit for each line in which words are armed.
  std::size_t armed_ = 0;
};

}  // namespace brant
