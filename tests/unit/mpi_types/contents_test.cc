// What types tell of how they were made, as other libraries of the standard do; and types that are found.
#include <vector>

#include <gtest/gtest.h>

#include "models/mpi/types/constructors.h"
#include "models/mpi/types/found_types.h"
#include "models/mpi/types/reduce.h"

namespace brant::mpi {
namespace {

using Ints = std::vector<int>;
using Numbers = std::vector<Count>;

struct Expected {
  Combiner combiner;
  Ints integers;
  Numbers addresses;
  Numbers large_counts;
};

void expect_contents(const Made& made, const Expected& expected) {
  ASSERT_TRUE(made.ok()) << made.fault.text;
  const Construction& contents = made.type->construction();
  EXPECT_EQ(contents.combiner, expected.combiner);
  EXPECT_EQ(contents.integers, expected.integers);
  EXPECT_EQ(contents.addresses, expected.addresses);
  EXPECT_EQ(contents.large_counts, expected.large_counts);
}

struct Measures {
  Count size, lb, extent, true_lb, true_extent;
};
void expect_measures(const Made& made, const Measures& expected) {
  EXPECT_EQ(made.type->size(), expected.size);
  EXPECT_EQ(made.type->lb(), expected.lb);
  EXPECT_EQ(made.type->extent(), expected.extent);
  EXPECT_EQ(made.type->true_lb(), expected.true_lb);
  EXPECT_EQ(made.type->true_extent(), expected.true_extent);
}

// Order and numbers as MPICH 5.0.2 gives them for the same calls.
TEST(Contents, AreInTheOrderOfTheStandard) {
  Datatype* const number = &predefined_type(0x209);
  const Numbers sizes = {10, 9}, parts = {3, 4}, starts = {1, 2}, lengths = {1, 2}, places = {8, 24};
  const Numbers kinds = {kDistributeBlock, kDistributeCyclic}, arguments = {kDistributeDefault, 2}, grid = {2, 3};
  const std::vector<Datatype*> types = {number, &predefined_type(0x214)};
  const CallForm ints = CallForm::ints;

  const Made subarray = subarray_type(sizes, parts, starts, 12, number);
  expect_contents(subarray, {Combiner::subarray, {2, 12}, {}, {10, 9, 3, 4, 1, 2}});
  expect_measures(subarray, {48, 0, 360, 44, 88});
  const Made by_columns = subarray_type(sizes, parts, starts, 15, number, ints);
  expect_contents(by_columns, {Combiner::subarray, {2, 10, 9, 3, 4, 1, 2, 15}, {}, {}});
  expect_measures(by_columns, {48, 0, 360, 84, 132});
  const Distribution how{6, 4, sizes, kinds, arguments, grid, 12};
  const Made darray = darray_type(how, number);
  expect_contents(darray, {Combiner::darray, {6, 4, 2, 17, 18, 19, 2, 2, 3, 12}, {}, {10, 9}});
  expect_measures(darray, {60, 0, 360, 188, 172});
  expect_contents(darray_type(how, number, ints),
                  {Combiner::darray, {6, 4, 2, 10, 9, 17, 18, 19, 2, 2, 3, 12}, {}, {}});

  const Made structure = struct_type(lengths, places, types);
  expect_contents(structure, {Combiner::structure, {}, {}, {2, 1, 2, 8, 24}});
  expect_measures(structure, {20, 8, 32, 8, 32});
  expect_contents(struct_type(lengths, places, types, ints), {Combiner::structure, {2, 1, 2}, {8, 24}, {}});
  expect_contents(resized_type(number, -4, 16), {Combiner::resized, {}, {}, {-4, 16}});
  expect_contents(hindexed_type(lengths, places, number), {Combiner::hindexed, {}, {}, {2, 1, 2, 8, 24}});
  expect_contents(hindexed_block_type(3, places, number), {Combiner::hindexed_block, {}, {}, {2, 3, 8, 24}});
  expect_contents(indexed_type(lengths, starts, number), {Combiner::indexed, {}, {}, {2, 1, 2, 1, 2}});
  expect_contents(hvector_type(2, 1, 16, number), {Combiner::hvector, {}, {}, {2, 1, 16}});
  expect_contents(hvector_type(2, 1, 16, number, ints), {Combiner::hvector, {2, 1}, {16}, {}});
  expect_contents(vector_type(2, 1, 3, number, ints), {Combiner::vector, {2, 1, 3}, {}, {}});
  expect_measures(vector_type(2, 1, -3, resized_type(number, -4, 16).type.get()), {8, -52, 64, -48, 52});
}

TEST(FoundTypes, OfFortranAreFoundByWhatTheyHold) {
  const Made real = f90_real_type(15, kUndefined);
  expect_contents(real, {Combiner::f90_real, {15, static_cast<int>(kUndefined)}, {}, {}});
  EXPECT_EQ(real.type->size(), 8);
  EXPECT_TRUE(real.type->predefined());
  EXPECT_TRUE(real.type->committed());
  EXPECT_EQ(find_datatype(real.type->handle()), real.type.get());
  EXPECT_EQ(f90_real_type(15, kUndefined).type, real.type);
  EXPECT_NE(f90_real_type(14, kUndefined).type, real.type);
  EXPECT_EQ(f90_real_type(6, 37).type->size(), 4);
  EXPECT_EQ(f90_real_type(kUndefined, 38).type->size(), 8);
  EXPECT_EQ(f90_complex_type(33, kUndefined).type->size(), 32);
  const Made integer = f90_integer_type(9);
  expect_contents(integer, {Combiner::f90_integer, {9}, {}, {}});
  EXPECT_EQ(integer.type->size(), 4);
  EXPECT_EQ(brant_reduction(*find_op(op_handle(0x21)), *real.type)->type, DataType::f64);
  for (const Made& made : {f90_real_type(kUndefined, kUndefined), f90_real_type(34, 0), f90_real_type(-1, 5),
                           f90_complex_type(3, 5000), f90_integer_type(39), f90_integer_type(-1)}) {
    EXPECT_EQ(made.fault.error, ErrorClass::arg);
    EXPECT_FALSE(made.type);
  }
}

TEST(FoundTypes, MatchClassAndSize) {
  EXPECT_EQ(matching_type(193, 8).type.get(), &predefined_type(0x2da));
  EXPECT_EQ(matching_type(192, 4).type.get(), &predefined_type(0x2d1));
  EXPECT_EQ(matching_type(194, 8).type.get(), &predefined_type(0x2db));
  EXPECT_EQ(matching_type(193, 3).fault.error, ErrorClass::arg);
  EXPECT_EQ(matching_type(7, 8).fault.error, ErrorClass::arg);
}

TEST(FoundTypes, ArePairsOfValueAndPlace) {
  EXPECT_EQ(value_index_type(predefined_type(0x214), predefined_type(0x209)), &predefined_type(0x229));
  EXPECT_EQ(value_index_type(predefined_type(0x219), predefined_type(0x219)), &predefined_type(0x232));
  EXPECT_EQ(value_index_type(predefined_type(0x214), predefined_type(0x20a)), nullptr);
  EXPECT_EQ(value_index_type(*contiguous_type(1, &predefined_type(0x214)).type, predefined_type(0x209)), nullptr);
}

}  // namespace
}  // namespace brant::mpi
