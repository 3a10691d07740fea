#include "bench/runner/pattern.h"

#include <vector>

#include <gtest/gtest.h>

namespace brant::bench {
namespace {

TEST(BenchPattern, is_recognised_at_every_length) {
  for (std::size_t length = 0; length < 70; ++length) {
    std::vector<std::byte> bytes(length);
    fill_pattern(bytes, 7);
    EXPECT_EQ(first_wrong_byte(bytes, 7), std::nullopt) << length;
    for (std::size_t i = 0; i < length; ++i) EXPECT_EQ(bytes[i], pattern_byte(7, i));
  }
}

TEST(BenchPattern, every_single_wrong_bit_is_found_where_it_is) {
  std::vector<std::byte> bytes(37);
  for (std::size_t index = 0; index < bytes.size(); ++index) {
    for (int bit = 0; bit < 8; ++bit) {
      fill_pattern(bytes, 1);
      bytes[index] ^= std::byte{static_cast<unsigned char>(1u << bit)};
      EXPECT_EQ(first_wrong_byte(bytes, 1), index);
    }
  }
}

TEST(BenchPattern, another_message_or_a_shift_is_wrong) {
  std::vector<std::byte> bytes(4096);
  fill_pattern(bytes, 1);
  EXPECT_TRUE(first_wrong_byte(bytes, 2));
  std::vector<std::byte> shifted(bytes.begin() + 8, bytes.end());
  EXPECT_TRUE(first_wrong_byte(shifted, 1));
}

TEST(BenchPattern, poison_has_no_right_byte) {
  std::vector<std::byte> bytes(1003);
  fill_poison(bytes, 5);
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_NE(bytes[i], pattern_byte(5, i));
}

}  // namespace
}  // namespace brant::bench
