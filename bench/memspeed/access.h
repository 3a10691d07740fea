#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// How fast the CPU reads and writes memory that it can address.
namespace brant::bench {

/// Quadratic stepping: the k-th place is k (k + 1) / 2, modulo how many there are. Each step is one longer than the one
/// before, so neither caches nor prefetchers foresee it, and of a power of two of places the first that many steps
/// visit each of them once.
class QuadraticSteps {
 public:
  /// `places`: a power of two.
  explicit QuadraticSteps(std::size_t places) noexcept : mask_(places - 1) {}

  /// The place of now, of which the first is 0; goes on to the next one.
  std::size_t next() noexcept {
    const std::size_t here = place_;
    place_ = (place_ + ++step_) & mask_;
    return here;
  }

 private:
  std::size_t mask_;
  std::size_t place_ = 0;
  std::size_t step_ = 0;
};

/// The largest power of two that is not above `number`; 0 of 0.
std::size_t power_of_two_within(std::size_t number) noexcept;

/// What is done to words of 8 bytes. Each returns a number that depends on all it did, so that nothing is left out.
/// `seed` is what is written, or added.
std::uint64_t write_in_order(std::span<std::uint64_t> words, std::uint64_t seed) noexcept;
std::uint64_t read_in_order(std::span<const std::uint64_t> words, std::uint64_t seed) noexcept;
/// So many accesses, at the next places of `steps`, which has no more of them than there are words.
std::uint64_t write_scattered(std::span<std::uint64_t> words, QuadraticSteps& steps, std::size_t count,
                              std::uint64_t seed) noexcept;
std::uint64_t read_scattered(std::span<const std::uint64_t> words, QuadraticSteps& steps, std::size_t count,
                             std::uint64_t seed) noexcept;

inline constexpr std::size_t kWordsOfLine = 8;  ///< A line of the cache has 64 bytes.

/// Writes one ring of pointers through all lines of the first power of two of them: the first word of each line is the
/// index of the word to look at next, by QuadraticSteps. Returns how many lines.
std::size_t link_lines(std::span<std::uint64_t> words) noexcept;
/// Follows that ring for `hops` from `at`, each load waiting for the one before. Returns the index it came to.
std::uint64_t chase(std::span<const std::uint64_t> words, std::size_t hops, std::uint64_t at) noexcept;

}  // namespace brant::bench
