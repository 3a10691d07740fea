#include "brant/base/shape.h"

#include <array>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace brant {
namespace {

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();

TEST(Shape, of_nothing_is_one_run_of_no_bytes) {
  EXPECT_EQ(Shape().bytes(), 0u);
  EXPECT_EQ(Shape().form(), Shape::Form::contiguous);
  const std::array dims = {ShapeDim{4, 100}, ShapeDim{0, 1000}};
  const Result<Shape> empty = Shape::strided(7, 8, dims);
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->bytes(), 0u);
  EXPECT_EQ(empty->form(), Shape::Form::contiguous);
  EXPECT_EQ(Shape::indexed({})->bytes(), 0u);
}

TEST(Shape, says_how_much_it_has_and_where_it_ends) {
  const std::array dims = {ShapeDim{3, 100}, ShapeDim{2, -1000}};
  const Result<Shape> shape = Shape::strided(5000, 8, dims);
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->bytes(), 48u);
  EXPECT_EQ(shape->lowest(), 4000u);
  EXPECT_EQ(shape->end(), 5208u);
  const std::array runs = {ByteRun{50, 10}, ByteRun{3, 0}, ByteRun{20, 4}};
  const Result<Shape> list = Shape::indexed(runs);
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->bytes(), 14u);
  EXPECT_EQ(list->lowest(), 20u);
  EXPECT_EQ(list->end(), 60u);
  EXPECT_EQ(Shape::contiguous(10, 4).end(), 14u);
}

TEST(Shape, joins_dimensions_that_go_on_where_the_last_one_ends) {
  const std::array whole = {ShapeDim{4, 8}, ShapeDim{5, 32}};
  EXPECT_EQ(Shape::strided(0, 8, whole)->form(), Shape::Form::contiguous);
  EXPECT_EQ(Shape::strided(0, 8, whole)->run(), 160u);
  const std::array rows = {ShapeDim{4, 8}, ShapeDim{1, 12345}, ShapeDim{5, 100}, ShapeDim{6, 500}};
  const Result<Shape> shape = Shape::strided(0, 8, rows);
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->run(), 32u);
  ASSERT_EQ(shape->dims().size(), 1u);
  EXPECT_EQ(shape->dims()[0].count, 30u);
}

TEST(Shape, of_more_dimensions_than_there_may_be_is_refused_unless_they_are_one) {
  std::vector<ShapeDim> dims;
  std::ptrdiff_t stride = 3;
  for (unsigned dim = 0; dim < Shape::kDimsMax; ++dim) dims.push_back({2, stride *= 3});
  EXPECT_TRUE(Shape::strided(0, 1, dims).ok());
  dims.push_back({2, dims.back().stride * 2});  // goes on
  EXPECT_TRUE(Shape::strided(0, 1, dims).ok());
  dims.push_back({2, stride * 300});
  EXPECT_EQ(Shape::strided(0, 1, dims).status(), Status::invalid_argument);
}

TEST(Shape, beyond_what_can_be_addressed_is_refused) {
  const std::array below = {ShapeDim{3, -10}};
  EXPECT_TRUE(Shape::strided(20, 1, below).ok());
  EXPECT_EQ(Shape::strided(19, 1, below).status(), Status::invalid_argument);
  for (const ShapeDim dim : {ShapeDim{kMost, 1}, ShapeDim{kMost / 2, 0}, ShapeDim{3, std::ptrdiff_t{1} << 62},
                             ShapeDim{std::size_t{1} << 40, std::ptrdiff_t{1} << 40}}) {
    EXPECT_EQ(Shape::strided(0, 16, std::array{dim}).status(), Status::invalid_argument) << dim.count;
  }
  EXPECT_EQ(Shape::strided(kMost, 1, {}).status(), Status::invalid_argument);
  EXPECT_EQ(Shape::strided(kMost / 2, 100, {}).status(), Status::invalid_argument);
  for (const ByteRun run : {ByteRun{kMost, 2}, ByteRun{kMost / 2, kMost / 2}, ByteRun{0, kMost}}) {
    EXPECT_EQ(Shape::indexed(std::array{run}).status(), Status::invalid_argument);
  }
  const std::array twice = {ByteRun{0, kMost / 2}, ByteRun{0, kMost / 2}};
  EXPECT_EQ(Shape::indexed(twice).status(), Status::invalid_argument);
}

}  // namespace
}  // namespace brant
