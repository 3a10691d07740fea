#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>

#include "base/env.h"

namespace brant::test {

/// BRANT_FUZZ_FACTOR: how much longer a fuzzer is to search.
inline unsigned fuzz_factor() {
  return static_cast<unsigned>(std::max<std::int64_t>(1, env_int("BRANT_FUZZ_FACTOR").value_or(1)));
}

/// How many records a fuzzer tries: `many` in a build without sanitizers, a twentieth with them, whose builds are that
/// much slower.
inline unsigned fuzz_records(unsigned many) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
  many /= 20;
#endif
  return many * fuzz_factor();
}

/// Spoils records as mistakes and malice do: bits, bytes, whole words with the values that arithmetic goes wrong at,
/// and pieces of the record put elsewhere. The same seed does the same.
class Mutation {
 public:
  explicit Mutation(std::uint64_t seed) : random_(seed) {}

  std::uint64_t number() { return random_(); }
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_() % end); }

  /// One to three changes.
  void spoil(std::span<std::byte> record) {
    if (record.empty()) return;
    for (std::size_t changes = 1 + below(3); changes != 0; --changes) change(record);
  }

  /// A number at which sizes, offsets and counts break.
  std::uint64_t odd_number() {
    const std::uint64_t power = std::uint64_t{1} << below(64);
    switch (below(5)) {
      case 0: return ~std::uint64_t{0} - below(64);
      case 1: return power;
      case 2: return power - 1 - below(2);
      case 3: return power + below(64);
      default: return below(256);
    }
  }

 private:
  void change(std::span<std::byte> record) {
    const std::size_t place = below(record.size());
    switch (below(4)) {
      case 0: record[place] ^= static_cast<std::byte>(1u << below(8)); return;
      case 1: record[place] = static_cast<std::byte>(random_()); return;
      case 2: {  // a field of 1, 2, 4 or 8 bytes, where one may stand
        const std::size_t width = std::size_t{1} << below(4);
        const std::uint64_t value = odd_number();
        const std::size_t at = place / width * width;
        std::memcpy(record.data() + at, &value, std::min(width, record.size() - at));
        return;
      }
      default: {
        const std::size_t from = below(record.size());
        const std::size_t bytes = 1 + below(std::min({record.size() - place, record.size() - from, std::size_t{16}}));
        std::memmove(record.data() + place, record.data() + from, bytes);
      }
    }
  }

  std::mt19937_64 random_;
};

}  // namespace brant::test
