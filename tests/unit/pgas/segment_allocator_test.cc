#include "models/pgas/segment_allocator.h"

#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace brant {
namespace {

TEST(SegmentAllocator, gives_all_of_a_segment_and_no_more) {
  SegmentAllocator allocator(1024);
  EXPECT_EQ(allocator.take(1024, 1), 0u);
  EXPECT_EQ(allocator.take(1, 1), std::nullopt);
  EXPECT_EQ(allocator.largest_free(), 0u);
  EXPECT_TRUE(allocator.give_back(0));
  EXPECT_EQ(allocator.largest_free(), 1024u);
  EXPECT_EQ(allocator.take(1025, 1), std::nullopt);
  SegmentAllocator empty(0);
  EXPECT_EQ(empty.take(1, 1), std::nullopt);
}

TEST(SegmentAllocator, aligns_and_uses_what_lies_before) {
  SegmentAllocator allocator(1024);
  EXPECT_EQ(allocator.take(1, 1), 0u);
  EXPECT_EQ(allocator.take(256, 256), 256u);
  EXPECT_EQ(allocator.take(255, 1), 1u) << "the best fit is what the alignment left";
  EXPECT_EQ(allocator.used(), 512u);
}

TEST(SegmentAllocator, aligns_addresses_and_not_offsets) {
  SegmentAllocator allocator(1024, 0x1004);
  EXPECT_EQ(allocator.take(8, 8), 4u);
  EXPECT_EQ(allocator.take(16, 64), 0x3cu);
  EXPECT_EQ(allocator.take(4, 4), 0u);
}

TEST(SegmentAllocator, refuses_what_was_not_taken) {
  SegmentAllocator allocator(1024);
  const auto at = allocator.take(100, 16);
  EXPECT_FALSE(allocator.give_back(*at + 16));
  EXPECT_TRUE(allocator.give_back(*at));
  EXPECT_FALSE(allocator.give_back(*at)) << "twice";
  EXPECT_NE(allocator.take(0, 1), allocator.take(0, 1)) << "nothing has a place of its own";
}

/// Against a plain map of bytes, in random order.
TEST(SegmentAllocator, never_gives_a_byte_twice_and_loses_none) {
  constexpr std::uint64_t kBytes = 4096;
  SegmentAllocator allocator(kBytes);
  std::map<std::uint64_t, std::uint64_t> taken;
  std::vector<bool> used(kBytes);
  std::mt19937 random(7);
  std::uint64_t total = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    if (random() % 2 == 0 || taken.empty()) {
      const std::uint64_t bytes = 1 + random() % 300, alignment = std::uint64_t{1} << (random() % 8);
      const auto at = allocator.take(bytes, alignment);
      if (!at) continue;
      ASSERT_EQ(*at % alignment, 0u);
      ASSERT_LE(*at + bytes, kBytes);
      for (std::uint64_t i = *at; i < *at + bytes; ++i) {
        ASSERT_FALSE(used[i]) << "byte " << i << " in turn " << turn;
        used[i] = true;
      }
      taken[*at] = bytes;
      total += bytes;
    } else {
      auto some = taken.begin();
      std::advance(some, random() % taken.size());
      ASSERT_TRUE(allocator.give_back(some->first));
      for (std::uint64_t i = some->first; i < some->first + some->second; ++i) used[i] = false;
      total -= some->second;
      taken.erase(some);
    }
    ASSERT_EQ(allocator.used(), total);
  }
  for (const auto& [at, bytes] : taken) ASSERT_TRUE(allocator.give_back(at));
  EXPECT_EQ(allocator.largest_free(), kBytes) << "all pieces have grown together";
}

}  // namespace
}  // namespace brant
