// Where a kernel finds the units of a strided end.
#include "ops/mover/shaped_order.h"

#include <gtest/gtest.h>

namespace brant {
namespace {

/// Runs of so many units of a byte, three of them, with gaps of 10.
ShapedOrder::End three_runs(std::uint64_t run) {
  ShapedOrder::End end{};
  end.run = run;
  end.dims = 1;
  end.count[0] = 3;
  end.stride[0] = static_cast<std::int64_t>(run + 10);
  return end;
}

TEST(ShapedOrder, finds_the_same_units_in_32_bits_as_in_64) {
  const ShapedOrder::End end = three_runs(7);
  ASSERT_TRUE(is_narrow(end, 21));
  for (std::uint64_t unit = 0; unit < 21; ++unit) {
    const auto wanted = static_cast<std::int64_t>(unit / 7 * 17 + unit % 7) * 4;
    ShapedOrder::End in_words = end;
    in_words.stride[0] *= 4;
    EXPECT_EQ(unit_offset<std::uint32_t>(in_words, unit, 4), wanted);
    EXPECT_EQ(unit_offset<std::uint64_t>(in_words, unit, 4), wanted);
  }
}

TEST(ShapedOrder, takes_64_bits_where_anything_is_larger_than_32) {
  constexpr std::uint64_t kBeyond = std::uint64_t{1} << 32;
  for (const std::uint64_t run : {kBeyond, kBeyond + 5}) {
    EXPECT_FALSE(is_narrow(three_runs(run), 100)) << "a short copy within a long run";
    EXPECT_EQ(unit_offset<std::uint64_t>(three_runs(run), 6, 1), 6);
  }
  ShapedOrder::End many = three_runs(7);
  many.count[0] = kBeyond;
  EXPECT_FALSE(is_narrow(many, 100));
  ShapedOrder::End far = three_runs(7);
  far.position = kBeyond - 10;
  EXPECT_TRUE(is_narrow(far, 9));
  EXPECT_FALSE(is_narrow(far, 10));
  EXPECT_FALSE(is_narrow(ShapedOrder::End{}, kBeyond));
}

}  // namespace
}  // namespace brant
