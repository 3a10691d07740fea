#include "brant/pgas/global_ptr.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace brant {
namespace {

constexpr unsigned kCuda = static_cast<unsigned>(MemoryKind::cuda);

TEST(GlobalPtr, says_where_the_memory_is_and_what_it_is) {
  constexpr GlobalPtr<double> at(3, 7, 64, kCuda, 2);
  static_assert(at.where() == Rank{3} && at.segment() == 7 && at.offset() == 64);
  EXPECT_EQ(at.kind(), MemoryKind::cuda);
  EXPECT_EQ(at.device(), 2u);
  EXPECT_TRUE(at);
  EXPECT_FALSE(GlobalPtr<double>{});
  EXPECT_TRUE(GlobalPtr<double>{}.is_null());
}

TEST(GlobalPtr, counts_in_objects_and_keeps_kind_and_device) {
  const GlobalPtr<double> at(3, 7, 64, kCuda, 255);
  GlobalPtr<double> moved = at + 5;
  EXPECT_EQ(moved.offset(), 64 + 40u);
  EXPECT_EQ(moved - at, 5);
  EXPECT_EQ(at - moved, -5);
  EXPECT_EQ((moved - 5), at);
  moved -= 5;
  ++moved;
  EXPECT_EQ(moved.offset(), 72u);
  EXPECT_EQ((-3 + moved).offset(), 48u);
  EXPECT_EQ((at - 9).device(), 255u) << "an offset before the beginning does not spill";
  EXPECT_EQ((at - 9).kind(), MemoryKind::cuda);
  EXPECT_EQ((at - 9) + 9, at);
}

TEST(GlobalPtr, is_ordered_within_a_segment_as_pointers_are) {
  const GlobalPtr<int> at(1, 2, 8, 1, 0);
  EXPECT_LT(at, at + 1);
  EXPECT_GT(at, at - 1);
  EXPECT_LT(at, (GlobalPtr<int>(1, 3, 0, 1, 0)));
  EXPECT_LT(at, (GlobalPtr<int>(2, 1, 0, 1, 0)));
  EXPECT_NE(at, (GlobalPtr<int>(1, 2, 8, 2, 0))) << "another kind of memory is another place";
}

TEST(GlobalPtr, converts_as_pointers_do) {
  const GlobalPtr<int> at(1, 2, 8, 1, 0);
  const GlobalPtr<const int> reading = at;
  EXPECT_EQ(reading.offset(), 8u);
  const GlobalPtr<std::byte> bytes = at;
  EXPECT_EQ((bytes + 4).as<int>(), at + 1);
  static_assert(!std::is_convertible_v<GlobalPtr<const int>, GlobalPtr<int>>);
  static_assert(!std::is_convertible_v<GlobalPtr<const int>, GlobalPtr<std::byte>>);
  static_assert(std::is_convertible_v<GlobalPtr<const int>, GlobalPtr<const std::byte>>);
  static_assert(!std::is_convertible_v<GlobalPtr<int>, GlobalPtr<float>>);
}

TEST(GlobalPtr, travels_as_bytes) {
  const GlobalPtr<int> at(1, 2, 8, kCuda, 3);
  std::byte message[sizeof(at)];
  std::memcpy(message, &at, sizeof(at));
  GlobalPtr<int> copy;
  std::memcpy(&copy, message, sizeof(copy));
  EXPECT_EQ(copy, at);
}

struct Particle {
  double mass;
  int charge;
  float spin[3];
};

TEST(GlobalPtr, finds_members) {
  const GlobalPtr<Particle> at(1, 2, 100, 1, 0);
  EXPECT_EQ(member_of(at, &Particle::mass).offset(), 100u);
  EXPECT_EQ(member_of(at, &Particle::charge).offset(), 108u);
  EXPECT_EQ(member_of(at + 1, &Particle::spin).offset(), 100 + sizeof(Particle) + 12);
}

}  // namespace
}  // namespace brant
