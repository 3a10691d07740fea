// Views of files against the standard's type map, expanded byte by byte.
#include "models/mpi/files/file_layout.h"

#include <string>

#include <gtest/gtest.h>

#include "fitting_types.h"
#include "support/effort.h"

namespace brant::mpi::test {
namespace {

constexpr Count kItems = 4;
constexpr unsigned kTypes = brant::test::effort(600u, 60u);

/// Where each byte of a part of a view lies.
std::vector<Count> places_of(const FileLayout& layout, std::size_t begin, std::size_t end) {
  std::vector<Count> places;
  layout.for_each_run(begin, end, [&](std::int64_t offset, std::uint64_t bytes) {
    for (std::uint64_t i = 0; i < bytes; ++i) places.push_back(offset + static_cast<Count>(i));
  });
  return places;
}

TEST(FileLayout, has_the_runs_of_its_type_from_any_place_on) {
  FittingTypes types(1);
  for (unsigned i = 0; i < kTypes; ++i) {
    const Twin twin = types.make();
    ASSERT_EQ(FileLayout::unfit(*twin.type), nullptr);
    ASSERT_TRUE(FileLayout(0, *twin.type).ascends());
    const Count displacement = types.number(0, 1000);
    const FileLayout layout(displacement, *twin.type);
    std::vector<Count> all = twin.model.bytes(kItems);
    for (Count& place : all) place += displacement;
    ASSERT_EQ(places_of(layout, 0, all.size()), all);
    for (int part = 0; part < 4; ++part) {
      const auto begin = static_cast<std::size_t>(types.number(0, static_cast<Count>(all.size()) - 1));
      const auto end =
          static_cast<std::size_t>(types.number(static_cast<Count>(begin), static_cast<Count>(all.size())));
      const std::vector<Count> expected(all.begin() + static_cast<Count>(begin), all.begin() + static_cast<Count>(end));
      ASSERT_EQ(places_of(layout, begin, end), expected) << begin << " to " << end;
      ASSERT_EQ(layout.offset_of(begin), all[begin]);
    }
  }
}

TEST(FileLayout, finds_the_first_byte_behind_an_offset_of_the_file) {
  FittingTypes types(2);
  for (unsigned i = 0; i < kTypes; ++i) {
    const Twin twin = types.make();
    const Count displacement = types.number(0, 100);
    const FileLayout layout(displacement, *twin.type);
    const std::vector<Count> all = twin.model.bytes(kItems + 1);
    for (int part = 0; part < 8; ++part) {
      const Count offset = types.number(0, all[all.size() - 1]);
      const auto expected = std::ranges::lower_bound(all, offset) - all.begin();
      ASSERT_EQ(layout.position_at(displacement + offset), static_cast<std::uint64_t>(expected)) << offset;
    }
  }
}

TEST(FileLayout, refuses_what_goes_backwards) {
  Datatype& number = predefined_type(0x208);
  const Made backwards = vector_type(3, 1, -2, &number);
  const Made before = hindexed_type(std::vector<Count>{1}, std::vector<Count>{-8}, &number);
  const Made shuffled = indexed_block_type(1, std::vector<Count>{4, 0, 9}, &number);
  const Made narrow = resized_type(vector_type(2, 1, 4, &number).type.get(), 0, 4);
  const Made still = resized_type(&number, 0, 0);
  for (const Made* made : {&backwards, &before, &shuffled, &narrow, &still}) {
    ASSERT_TRUE(made->ok());
    EXPECT_NE(FileLayout::unfit(*made->type), nullptr);
  }
  EXPECT_EQ(FileLayout::unfit(*contiguous_type(0, &number).type), nullptr) << "nothing goes anywhere";
}

TEST(FileLayout, of_no_bytes_has_no_runs) {
  const FileLayout layout(10, *contiguous_type(0, &predefined_type(0x208)).type);
  EXPECT_TRUE(layout.empty());
  EXPECT_TRUE(places_of(layout, 0, 100).empty());
  EXPECT_EQ(layout.position_at(1000), 0u);
  EXPECT_EQ(layout.offset_of(5), 10);
}

TEST(FileLayout, tells_whether_bytes_are_there_twice) {
  Datatype& number = predefined_type(0x208);
  const Count bytes = number.size();
  const Made row = contiguous_type(8, &number);
  const Made narrow = resized_type(row.type.get(), 0, 2 * bytes);
  const Made twice = hindexed_type(std::vector<Count>{2, 2}, std::vector<Count>{0, bytes}, &number);
  const Made of_rows = hvector_type(3, 1, 2 * bytes, row.type.get());
  for (const Made* made : {&narrow, &twice, &of_rows}) {
    ASSERT_EQ(FileLayout::unfit(*made->type), nullptr);
    EXPECT_FALSE(FileLayout(0, *made->type).ascends());
  }
}

/// A column of a matrix that nobody could expand.
TEST(FileLayout, reaches_as_far_as_offsets_do) {
  constexpr Count kRow = Count{1} << 33;
  const Made wide = resized_type(&predefined_type(0x208), 0, kRow);
  const FileLayout layout(0, *wide.type);
  const auto bytes = static_cast<std::uint64_t>(wide.type->size());
  EXPECT_EQ(layout.offset_of(1000 * bytes), 1000 * kRow);
  EXPECT_EQ(layout.position_at(1000 * kRow), 1000 * bytes);
  EXPECT_TRUE(layout.reaches(((std::uint64_t{1} << 30) - 4) * bytes));
  EXPECT_FALSE(layout.reaches((std::uint64_t{1} << 30) * bytes));
}

}  // namespace
}  // namespace brant::mpi::test
