#include "base/atomic_word.h"

#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/atomic_cases.h"

namespace brant {
namespace {

TEST(AtomicWord, every_operation_does_what_the_model_says_and_touches_nothing_else) {
  const auto cases = test::atomic_cases();
  EXPECT_GT(cases.size(), 1500u);
  for (const test::AtomicCase& each : cases) {
    constexpr std::uint64_t kAround = 0xa5a5a5a5a5a5a5a5;
    std::uint64_t words[3] = {kAround, kAround, kAround};
    std::memcpy(&words[1], &each.before, each.what.bytes());
    const std::uint64_t told = perform_atomic(&words[1], each.what);
    std::uint64_t after = 0;
    std::memcpy(&after, &words[1], each.what.bytes());
    ASSERT_EQ(told, test::told_by(each)) << each.name;
    ASSERT_EQ(after, each.after) << each.name;
    if (each.what.bytes() == 4) {
      ASSERT_EQ(words[1] >> 32, kAround >> 32) << each.name;
    }
    ASSERT_TRUE(words[0] == kAround && words[2] == kAround) << each.name;
  }
}

TEST(AtomicWord, pairs_that_do_not_exist_say_so) {
  for (const Atomic& each : test::atomics_that_do_not_exist())
    EXPECT_FALSE(each.exists()) << static_cast<int>(each.operation) << " " << static_cast<int>(each.type);
  EXPECT_TRUE(Atomic::of<float>(AtomicOp::compare_swap).exists());
  EXPECT_TRUE(Atomic::of<int>(AtomicOp::bit_xor).exists());
}

TEST(AtomicWord, types_of_one_size_and_sign_are_one) {
  EXPECT_EQ(kAtomicTypeOf<long>, AtomicType::i64);
  EXPECT_EQ(kAtomicTypeOf<long long>, AtomicType::i64);
  EXPECT_EQ(kAtomicTypeOf<unsigned long long>, AtomicType::u64);
  EXPECT_EQ(kAtomicTypeOf<char32_t>, AtomicType::u32);
  EXPECT_EQ(kAtomicTypeOf<double>, AtomicType::f64);
  EXPECT_FALSE(AtomicValue<bool>);
  EXPECT_FALSE(AtomicValue<short>);
}

/// Sums of floating numbers and minima are loops: none of them may be lost either.
TEST(AtomicWord, threads_lose_none) {
  constexpr int kThreads = 4, kTimes = 20'000;
  double sum = 0;
  std::int64_t least = 0;
  std::uint32_t count = 0;
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < kTimes; ++i) {
          perform_atomic(&sum, Atomic::of<double>(AtomicOp::add, 0.5));
          perform_atomic(&least, Atomic::of<std::int64_t>(AtomicOp::min, -(i * kThreads + thread)));
          perform_atomic(&count, Atomic::of<std::uint32_t>(AtomicOp::add, 1));
        }
      });
    }
  }
  EXPECT_EQ(sum, kThreads * kTimes / 2.0);
  EXPECT_EQ(least, -(kTimes * kThreads - 1));
  EXPECT_EQ(count, static_cast<std::uint32_t>(kThreads * kTimes));
}

}  // namespace
}  // namespace brant
