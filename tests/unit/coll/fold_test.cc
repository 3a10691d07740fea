// How elements are combined, against plain loops; and the floats of 16 bits, all of them.
#include "ops/coll/fold.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ops/coll/half.h"

namespace brant::coll {
namespace {

constexpr std::size_t kCount = 1500;  // more than a block

template <typename T>
std::vector<std::vector<T>> gifts(std::size_t members) {
  std::mt19937_64 random(3);
  std::vector<std::vector<T>> all(members, std::vector<T>(kCount));
  for (auto& values : all) {
    for (T& value : values) {
      if constexpr (std::is_floating_point_v<T>) {
        value = static_cast<T>(std::uniform_real_distribution<double>(-100, 100)(random));
      } else {
        value = static_cast<T>(random());
      }
    }
  }
  return all;
}

template <typename T, typename Combine>
void expect_fold(ReduceOp op, Combine combine) {
  for (const std::size_t members : {std::size_t{1}, std::size_t{2}, std::size_t{5}}) {
    auto given = gifts<T>(members);
    std::vector<T> expected = given[0];
    for (std::size_t m = 1; m < members; ++m) {
      for (std::size_t i = 0; i < kCount; ++i) expected[i] = combine(expected[i], given[m][i]);
    }
    // The result may lie where one of the inputs does.
    for (std::size_t place = 0; place < members; ++place) {
      auto again = given;
      std::vector<const void*> inputs;
      for (const auto& values : again) inputs.push_back(values.data());
      fold({kDataTypeOf<T>, op, nullptr}, inputs, again[place].data(), kCount);
      ASSERT_EQ(std::memcmp(again[place].data(), expected.data(), kCount * sizeof(T)), 0)
          << reduce_op_name(op) << " of " << data_type_name(kDataTypeOf<T>);
    }
  }
}

template <typename T>
void expect_numbers() {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, T, std::uint64_t>;
  expect_fold<T>(ReduceOp::sum, [](T a, T b) { return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b)); });
  expect_fold<T>(ReduceOp::prod, [](T a, T b) { return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b)); });
  expect_fold<T>(ReduceOp::min, [](T a, T b) { return b < a ? b : a; });
  expect_fold<T>(ReduceOp::max, [](T a, T b) { return a < b ? b : a; });
}

template <typename T>
void expect_integers() {
  expect_numbers<T>();
  expect_fold<T>(ReduceOp::bit_and, [](T a, T b) { return static_cast<T>(a & b); });
  expect_fold<T>(ReduceOp::bit_or, [](T a, T b) { return static_cast<T>(a | b); });
  expect_fold<T>(ReduceOp::bit_xor, [](T a, T b) { return static_cast<T>(a ^ b); });
}

TEST(Fold, integers_wrap_around) {
  expect_integers<std::int8_t>();
  expect_integers<std::uint8_t>();
  expect_integers<std::int16_t>();
  expect_integers<std::uint16_t>();
  expect_integers<std::int32_t>();
  expect_integers<std::uint32_t>();
  expect_integers<std::int64_t>();
  expect_integers<std::uint64_t>();
}

TEST(Fold, floats_are_added_in_order) {
  expect_numbers<float>();
  expect_numbers<double>();
  const float a[] = {1e8f}, b[] = {1}, c[] = {-1e8f}, d[] = {1};
  float sum = 0;
  fold({DataType::f32, ReduceOp::sum, nullptr}, std::vector<const void*>{a, b, c, d}, &sum, 1);
  EXPECT_EQ(sum, ((1e8f + 1.0f) + -1e8f) + 1.0f);
}

template <typename T>
T folded(DataType type, ReduceOp op, std::vector<T> values) {
  std::vector<const void*> inputs;
  for (const T& value : values) inputs.push_back(&value);
  T result{};
  fold({type, op, nullptr}, inputs, &result, 1);
  return result;
}

TEST(Fold, averages_logic_and_places) {
  EXPECT_EQ(folded<std::int8_t>(DataType::i8, ReduceOp::average, {-7, -2}), -4);
  EXPECT_EQ(folded<std::uint64_t>(DataType::u64, ReduceOp::average, {7, 8, 8}), 7u);
  EXPECT_EQ(folded<double>(DataType::f64, ReduceOp::average, {1, 2}), 1.5);
  EXPECT_EQ(folded<std::int32_t>(DataType::i32, ReduceOp::logical_and, {4, 2}), 1);
  EXPECT_EQ(folded<std::int32_t>(DataType::i32, ReduceOp::logical_or, {0, 8}), 1);
  EXPECT_EQ(folded<std::uint8_t>(DataType::boolean, ReduceOp::logical_xor, {1, 1}), 0);
  struct Pair {
    double value;
    std::int64_t place;
    bool operator==(const Pair&) const = default;
  };
  EXPECT_EQ(folded<Pair>(DataType::f64_i64, ReduceOp::min_place, {{3, 0}, {1, 5}, {1, 2}}), (Pair{1, 2}));
  EXPECT_EQ(folded<Pair>(DataType::f64_i64, ReduceOp::max_place, {{3, 4}, {3, 1}, {1, 0}}), (Pair{3, 1}));
}

TEST(Fold, halves_are_added_as_floats_and_rounded_once) {
  // Each step rounded would stay at 256: bf16 has 8 bits.
  const std::vector<std::uint16_t> ones(301, to_bf16(1.0f));
  std::vector<std::uint16_t> values = ones;
  values[0] = to_bf16(256.0f);
  EXPECT_EQ(from_bf16(folded<std::uint16_t>(DataType::bf16, ReduceOp::sum, values)), 556.0f);
  EXPECT_EQ(from_f16(folded<std::uint16_t>(DataType::f16, ReduceOp::sum, {to_f16(2048), to_f16(1), to_f16(1)})), 2050);
}

TEST(Half, every_word_comes_back) {
  for (std::uint32_t word = 0; word < 0x10000; ++word) {
    const auto half = static_cast<std::uint16_t>(word);
    if (std::isnan(from_f16(half))) {
      ASSERT_TRUE(std::isnan(from_f16(to_f16(from_f16(half))))) << word;
    } else {
      ASSERT_EQ(to_f16(from_f16(half)), half) << word;
    }
    if (std::isnan(from_bf16(half))) {
      ASSERT_TRUE(std::isnan(from_bf16(to_bf16(from_bf16(half))))) << word;
    } else {
      ASSERT_EQ(to_bf16(from_bf16(half)), half) << word;
    }
  }
}

TEST(Half, floats_go_to_the_nearest_and_then_to_the_even_one) {
  // Between every two neighbours: the middle goes to the even one, and what is beside it to the nearer one.
  for (std::uint32_t word = 0; word < 0x7bff; ++word) {
    const auto low = static_cast<std::uint16_t>(word), high = static_cast<std::uint16_t>(word + 1);
    const float middle = (from_f16(low) + from_f16(high)) / 2;
    ASSERT_EQ(to_f16(middle), word % 2 == 0 ? low : high) << word;
    ASSERT_EQ(to_f16(std::nextafter(middle, 0.0f)), low) << word;
    ASSERT_EQ(to_f16(std::nextafter(middle, 1e9f)), high) << word;
    ASSERT_EQ(to_f16(-middle), 0x8000u | (word % 2 == 0 ? low : high)) << word;
  }
  EXPECT_EQ(to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(to_f16(1e30f), 0x7c00);
  EXPECT_EQ(to_bf16(1.00390625f), to_bf16(1.0f));  // the middle
  EXPECT_EQ(from_f16(0x3c00), 1.0f);
  EXPECT_EQ(from_f16(0x0001), 0x1p-24f);
}

}  // namespace
}  // namespace brant::coll
