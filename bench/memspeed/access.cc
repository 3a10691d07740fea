#include "bench/memspeed/access.h"

#include <bit>

namespace brant::bench {

std::size_t power_of_two_within(std::size_t number) noexcept { return std::bit_floor(number); }

std::uint64_t write_in_order(std::span<std::uint64_t> words, std::uint64_t seed) noexcept {
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = seed + i;
  return words.empty() ? seed : words.back();
}

std::uint64_t read_in_order(std::span<const std::uint64_t> words, std::uint64_t seed) noexcept {
  for (const std::uint64_t word : words) seed += word;
  return seed;
}

std::uint64_t write_scattered(std::span<std::uint64_t> words, QuadraticSteps& steps, std::size_t count,
                              std::uint64_t seed) noexcept {
  for (std::size_t i = 0; i < count; ++i) words[steps.next()] = ++seed;
  return seed;
}

std::uint64_t read_scattered(std::span<const std::uint64_t> words, QuadraticSteps& steps, std::size_t count,
                             std::uint64_t seed) noexcept {
  for (std::size_t i = 0; i < count; ++i) seed += words[steps.next()];
  return seed;
}

std::size_t link_lines(std::span<std::uint64_t> words) noexcept {
  const std::size_t lines = power_of_two_within(words.size() / kWordsOfLine);
  if (lines == 0) return 0;
  QuadraticSteps steps(lines);
  const std::size_t first = steps.next();
  std::size_t before = first;
  for (std::size_t i = 1; i < lines; ++i) {
    const std::size_t line = steps.next();
    words[before * kWordsOfLine] = line * kWordsOfLine;
    before = line;
  }
  words[before * kWordsOfLine] = first * kWordsOfLine;
  return lines;
}

std::uint64_t chase(std::span<const std::uint64_t> words, std::size_t hops, std::uint64_t at) noexcept {
  for (std::size_t i = 0; i < hops; ++i) at = words[at];
  return at;
}

}  // namespace brant::bench
