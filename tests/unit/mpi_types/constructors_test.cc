// What constructors refuse, and what is said of it; and types whose sizes nobody can look at.
#include "models/mpi/types/constructors.h"

#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "models/mpi/types/elements.h"
#include "models/mpi/types/pack.h"
#include "models/mpi/types/signature.h"
#include "models/mpi/types/type_shape.h"
#include "support/effort.h"

namespace brant::mpi {
namespace {

constexpr Count kMost = std::numeric_limits<Count>::max();
constexpr Count kLeast = std::numeric_limits<Count>::min();
constexpr int kOrderC = static_cast<int>(ArrayOrder::c);

using Numbers = std::vector<Count>;

Datatype* int_type() { return &predefined_type(0x209); }
Datatype* double_type() { return &predefined_type(0x214); }

ErrorClass error_of(const Made& made) {
  EXPECT_EQ(made.ok(), static_cast<bool>(made.type));
  EXPECT_EQ(made.ok(), made.fault.text.empty());
  return made.fault.error;
}

TEST(Datatypes, HandlesFindTheirTypes) {
  for (std::uintptr_t number = 0; number <= kLastPredefined; ++number) {
    const Datatype* type = find_datatype(type_handle(number));
    const bool named = number > kFirstType && number < kFirstType + kTypeNumbers &&
                       basic_type(static_cast<std::uint16_t>(number - kFirstType)).number != 0;
    ASSERT_EQ(type != nullptr, named) << number;
    if (named) {
      EXPECT_EQ(type->handle(), type_handle(number));
    }
  }
  const Made made = contiguous_type(3, int_type());
  EXPECT_EQ(find_datatype(made.type->handle()), made.type.get());
  alignas(Datatype) const std::byte other[sizeof(Datatype)] = {};
  EXPECT_EQ(find_datatype(type_handle(handle_number(&other))), nullptr);
  EXPECT_EQ(find_datatype(type_handle(handle_number(&other) + 1)), nullptr);
}

TEST(Datatypes, PairsAreLaidOutAsInC) {
  struct Expected {
    std::uint16_t number;
    Count size;
    Count extent;
  };
  struct LongDoubleInt {
    long double value;
    int place;
  };
  for (const auto& [number, size, extent] :
       {Expected{0x228, 8, 8}, Expected{0x229, 12, 16}, Expected{0x22a, 12, 16}, Expected{0x22b, 8, 8},
        Expected{0x22c, 6, 8}, Expected{0x22d, 20, sizeof(LongDoubleInt)}, Expected{0x231, 16, 16}}) {
    EXPECT_EQ(predefined_type(number).size(), size) << number;
    EXPECT_EQ(predefined_type(number).extent(), extent) << number;
    EXPECT_EQ(elements_in(predefined_type(number), 3 * size), 6) << number;
  }
}

TEST(Datatypes, LiveAsLongAsSomethingIsMadeOfThem) {
  Made inner = contiguous_type(3, int_type());
  Datatype* const type = inner.type.get();
  EXPECT_EQ(type->references(), 1u);
  Made outer = vector_type(2, 1, 5, type);
  EXPECT_EQ(type->references(), 2u);
  inner.type = DatatypeRef();  // MPI_Type_free
  EXPECT_EQ(type->references(), 1u);
  EXPECT_EQ(outer.type->construction().types[0].get(), type);
  DatatypeRef kept = outer.type->construction().types[0];
  outer.type = DatatypeRef();
  EXPECT_EQ(kept->references(), 1u);
}

TEST(Datatypes, AttachmentsGoWithTheType) {
  struct Counted final : TypeAttachment {
    Counted(Datatype& of, int& count) : type(of), gone(count) {}
    ~Counted() override {
      // As functions of a program do, which get the handle.
      const DatatypeRef found(find_datatype(type.handle()));
      if (found && found->size() == 12) ++gone;
    }
    Datatype& type;
    int& gone;
  };
  int gone = 0;
  Made made = contiguous_type(3, int_type());
  made.type->attach(std::make_unique<Counted>(*made.type, gone));
  EXPECT_NE(made.type->attachment(), nullptr);
  made.type = DatatypeRef();
  EXPECT_EQ(gone, 1);
}

TEST(Constructors, RefuseWrongArguments) {
  Datatype* const old = int_type();
  const Numbers one = {1}, negative = {-1};
  EXPECT_EQ(error_of(contiguous_type(-1, old)), ErrorClass::count);
  EXPECT_EQ(error_of(contiguous_type(1, nullptr)), ErrorClass::type);
  EXPECT_EQ(error_of(vector_type(-1, 1, 1, old)), ErrorClass::count);
  EXPECT_EQ(error_of(vector_type(1, -1, 1, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(vector_type(1, 1, 1, nullptr)), ErrorClass::type);
  EXPECT_EQ(error_of(hvector_type(-1, 1, 1, old)), ErrorClass::count);
  EXPECT_EQ(error_of(hvector_type(1, -1, 1, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(indexed_type(negative, one, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(hindexed_type(negative, one, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(indexed_block_type(-1, one, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(hindexed_block_type(-1, one, nullptr)), ErrorClass::type);
  const std::vector<Datatype*> none = {nullptr};
  const std::vector<Datatype*> ints = {old};
  EXPECT_EQ(error_of(struct_type(one, one, none)), ErrorClass::type);
  EXPECT_EQ(error_of(struct_type(negative, one, ints)), ErrorClass::arg);
  EXPECT_EQ(error_of(resized_type(nullptr, 0, 1)), ErrorClass::type);
  EXPECT_EQ(error_of(dup_type(nullptr)), ErrorClass::type);
}

TEST(Constructors, RefuseWrongArrays) {
  Datatype* const old = int_type();
  const Numbers size = {4}, zero = {0}, one = {1}, two = {2}, five = {5}, negative = {-1};
  EXPECT_EQ(error_of(subarray_type({}, {}, {}, kOrderC, old)), ErrorClass::dims);
  EXPECT_EQ(error_of(subarray_type(size, zero, zero, kOrderC, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(subarray_type(size, five, zero, kOrderC, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(subarray_type(size, one, negative, kOrderC, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(subarray_type(size, one, size, kOrderC, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(subarray_type(zero, one, zero, kOrderC, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(subarray_type(size, one, zero, 7, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(subarray_type(size, one, zero, kOrderC, nullptr)), ErrorClass::type);

  const Numbers block = {kDistributeBlock}, none = {kDistributeNone}, usual = {kDistributeDefault};
  EXPECT_EQ(error_of(darray_type({2, 0, size, block, usual, two, kOrderC}, old)), ErrorClass::success);
  EXPECT_EQ(error_of(darray_type({0, 0, size, block, usual, two, kOrderC}, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(darray_type({2, 2, size, block, usual, two, kOrderC}, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(darray_type({2, -1, size, block, usual, two, kOrderC}, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(darray_type({3, 0, size, block, usual, two, kOrderC}, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(darray_type({2, 0, size, none, usual, two, kOrderC}, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(darray_type({2, 0, size, block, one, two, kOrderC}, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(darray_type({2, 0, size, block, zero, two, kOrderC}, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(darray_type({2, 0, size, five, usual, two, kOrderC}, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(darray_type({2, 0, size, block, usual, zero, kOrderC}, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(darray_type({2, 0, zero, block, usual, two, kOrderC}, old)), ErrorClass::arg);
  EXPECT_EQ(error_of(darray_type({2, 0, size, block, usual, two, 0}, old)), ErrorClass::arg);
}

TEST(Constructors, SayWhatIsWrong) {
  const Numbers lengths = {1, 2, -3}, places = {0, 5, 9};
  EXPECT_EQ(indexed_type(lengths, places, int_type()).fault.text, "block length 2 is -3: give 0 or more");
  const Numbers sizes = {4, 4}, parts = {2, 3}, starts = {2, 2};
  EXPECT_EQ(subarray_type(sizes, parts, starts, kOrderC, int_type()).fault.text,
            "dimension 1: the part starts at 2: give 0 to 1");
}

TEST(Constructors, RefuseWhat63BitsDoNotHold) {
  Datatype* const old = double_type();
  const Numbers one = {1}, two = {1, 1}, far = {kMost}, apart = {kLeast, kMost - 8};
  EXPECT_EQ(error_of(contiguous_type(kMost / 4, old)), ErrorClass::value_too_large);
  EXPECT_EQ(error_of(vector_type(2, 1, kMost / 4, old)), ErrorClass::value_too_large);
  EXPECT_EQ(error_of(hvector_type(3, 1, kMost / 2, old)), ErrorClass::value_too_large);
  EXPECT_EQ(error_of(vector_type(kMost, kMost, 1, old)), ErrorClass::value_too_large);
  EXPECT_EQ(error_of(indexed_type(one, far, old)), ErrorClass::value_too_large);
  EXPECT_EQ(error_of(hindexed_type(one, far, old)), ErrorClass::value_too_large);
  EXPECT_EQ(error_of(hindexed_type(two, apart, old)), ErrorClass::value_too_large);
  EXPECT_EQ(error_of(resized_type(old, kMost, kMost)), ErrorClass::value_too_large);
  const Numbers large = {kMost / 8, 8};
  EXPECT_EQ(error_of(subarray_type(large, two, Numbers{0, 0}, kOrderC, old)), ErrorClass::value_too_large);
}

TEST(Constructors, BoundTheDepth) {
  DatatypeRef type(int_type());
  Made made;
  int levels = 0;
  for (; levels < 100'000; ++levels) {
    const Numbers lengths = {1, 1}, places = {0, type->extent()};
    const std::vector<Datatype*> types = {type.get(), double_type()};
    made = struct_type(lengths, places, types);
    if (!made.ok()) break;
    type = made.type;
  }
  EXPECT_EQ(made.fault.error, ErrorClass::other);
  EXPECT_GT(levels, 100);
  EXPECT_EQ(type->size(), 4 + 8 * levels);
}

// A million and more runs, none of which anybody looks at.
TEST(Layouts, KeepRegularPatternsAsLoops) {
  const Made row = vector_type(1000, 1, 3, double_type());
  const Made plane = hvector_type(1000, 1, 50'000, row.type.get());
  const Made block = hvector_type(1'000'000'000, 1, Count{1} << 32, plane.type.get());
  ASSERT_TRUE(block.ok()) << block.fault.text;
  EXPECT_EQ(block.type->size(), 8'000'000 * Count{1'000'000'000});
  EXPECT_LE(block.type->layout().layout->depth, 4u);
  const std::optional<TypeShape> shape = TypeShape::of(*block.type, 1);
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->shape().form(), Shape::Form::strided);
  EXPECT_EQ(shape->shape().dims().size(), 3u);
  EXPECT_EQ(signature_of(*block.type, 1).elements, 1'000'000 * std::uint64_t{1'000'000'000});
  EXPECT_EQ(elements_in(*block.type, block.type->size() - 8), 1'000'000 * Count{1'000'000'000} - 1);
}

TEST(Layouts, FindThePatternInLists) {
  Numbers places, lengths;
  for (Count i = 0; i < 1000; ++i) {
    places.push_back(7 * i);
    lengths.push_back(2);
  }
  const Made regular = indexed_type(lengths, places, int_type());
  EXPECT_EQ(regular.type->layout().layout->form, Layout::Form::loop);
  for (Count i = 0; i < 1000; ++i) places[static_cast<std::size_t>(i)] = 2 * i;
  const Made together = indexed_type(lengths, places, int_type());
  EXPECT_TRUE(together.type->contiguous());
  const Made mixed =
      struct_type(Numbers{1, 1}, Numbers{0, 4}, std::vector<Datatype*>{int_type(), &predefined_type(0x210)});
  EXPECT_TRUE(mixed.type->contiguous());
  EXPECT_EQ(contiguous_type(1000, mixed.type.get()).type->layout().layout->form, Layout::Form::run);
}

TEST(Shapes, GoOnBehindTheRunsThatFit) {
  Numbers places;
  std::minstd_rand random(5);
  for (Count i = 0; i < 1500; ++i) places.push_back(40 * i + static_cast<Count>(random() % 30));
  const Made list = hindexed_block_type(1, places, int_type());
  const Count count = 1000, all = list.type->bytes_of(count);
  Count at = 0;
  int pieces = 0;
  for (; at < all; ++pieces) {
    const std::optional<TypeShape> shape = TypeShape::of(*list.type, count, at, all);
    ASSERT_TRUE(shape);
    ASSERT_LE(shape->shape().runs().size(), TypeShape::kRunsMost);
    at += static_cast<Count>(shape->shape().bytes());
  }
  EXPECT_EQ(at, all);
  EXPECT_EQ(pieces, 2);
}

TEST(Signatures, ReadAsTheTypesAreNested) {
  const Made pair = struct_type(Numbers{1, 2}, Numbers{0, 8}, std::vector<Datatype*>{int_type(), double_type()});
  EXPECT_EQ(signature_text(*pair.type, 3), "3 x (MPI_INT, 2 x MPI_DOUBLE)");
  EXPECT_EQ(signature_text(*int_type(), 4), "4 x MPI_INT");
  EXPECT_EQ(signature_text(*pair.type, 0), "nothing");
  EXPECT_EQ(signature_text(*pair.type, 3, 12), "3 x (MPI_...");
}

/// Numbers that programs should not give, and some that they may.
Count hostile(std::mt19937& random) {
  static constexpr Count kNumbers[] = {0,
                                       1,
                                       2,
                                       3,
                                       -1,
                                       7,
                                       100,
                                       1000,
                                       kLeast,
                                       kMost,
                                       kMost / 2,
                                       kMost - 1,
                                       Count{1} << 31,
                                       Count{1} << 32,
                                       -(Count{1} << 33),
                                       kMost / 8,
                                       16,
                                       17,
                                       18,
                                       19};
  return kNumbers[random() % std::size(kNumbers)];
}

/// As a call with `int` gives them.
Count hostile_int(std::mt19937& random) { return static_cast<int>(hostile(random)); }

Made hostile_type(std::mt19937& random, Datatype* old) {
  const auto form = random() % 2 == 0 ? CallForm::ints : CallForm::counts;
  const auto count = [&] { return form == CallForm::ints ? hostile_int(random) : hostile(random); };
  const std::size_t many = random() % 4;
  Numbers lengths, places, counts, addresses, ints[3];
  std::vector<Datatype*> types;
  for (std::size_t i = 0; i < many; ++i) {
    lengths.push_back(count());
    places.push_back(count());
    counts.push_back(count());
    addresses.push_back(hostile(random));
    for (Numbers& list : ints) list.push_back(hostile_int(random));
    types.push_back(random() % 9 == 0 ? nullptr : old);
  }
  const int order = random() % 5 == 0 ? 3 : kOrderC + 3 * static_cast<int>(random() % 2);
  switch (random() % 11) {
    case 0: return contiguous_type(count(), old, form);
    case 1: return vector_type(count(), count(), count(), old, form);
    case 2: return hvector_type(count(), count(), hostile(random), old, form);
    case 3: return indexed_type(lengths, places, old, form);
    case 4: return hindexed_type(lengths, addresses, old, form);
    case 5: return indexed_block_type(count(), places, old, form);
    case 6: return hindexed_block_type(count(), addresses, old, form);
    case 7: return struct_type(lengths, addresses, types, form);
    case 8: return resized_type(old, hostile(random), hostile(random), form);
    case 9: return subarray_type(lengths, places, counts, order, old, form);
    default:
      return darray_type({hostile_int(random), hostile_int(random), lengths, ints[0], ints[1], ints[2], order}, old,
                         form);
  }
}

// Either refuses or makes a type that can be used: nothing overflows, nothing loops for ever.
TEST(Constructors, StandHostileArguments) {
  std::mt19937 random(11);
  const int all = brant::test::effort(200'000, 30'000);
  int made = 0;
  std::vector<DatatypeRef> types = {DatatypeRef(int_type()), DatatypeRef(&predefined_type(0x22c))};
  for (int i = 0; i < all; ++i) {
    Datatype* old = random() % 20 == 0 ? nullptr : types[random() % types.size()].get();
    const Made type = hostile_type(random, old);
    if (!type.ok()) {
      EXPECT_FALSE(type.fault.text.empty());
      continue;
    }
    ++made;
    EXPECT_GE(type.type->size(), 0);
    static_cast<void>(signature_of(*type.type, kMost));
    static_cast<void>(signature_text(*type.type, 2));
    static_cast<void>(elements_in(*type.type, kMost));
    static_cast<void>(type.type->bytes_of(kMost));
    EXPECT_EQ(error_of(type.type->predefined() ? type : rebuilt_type(type.type->construction())), ErrorClass::success);
    types.size() < 300 ? types.push_back(type.type) : void(types[random() % types.size()] = type.type);
  }
  EXPECT_GT(made, all / 10);
  EXPECT_LT(made, all - all / 10);
}

}  // namespace
}  // namespace brant::mpi
