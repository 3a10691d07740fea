// All predefined operations on all predefined types, against plain loops; and those of programs.
#include "models/mpi/types/reduce.h"

#include <complex>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/mpi/types/basic_types.h"
#include "models/mpi/types/pack.h"

namespace brant::mpi {
namespace {

constexpr Count kCount = 300;
using Numbers = std::vector<Count>;

const Op& op_of(std::uint16_t number) { return *find_op(op_handle(number)); }
constexpr std::uint16_t kSum = 0x21, kMin = 0x22, kMax = 0x23, kProd = 0x24, kBand = 0x28, kBor = 0x29, kBxor = 0x2a,
                        kLand = 0x30, kLor = 0x31, kLxor = 0x32, kMinloc = 0x38, kMaxloc = 0x39, kReplace = 0x3c,
                        kNoOp = 0x3d;

bool allowed(std::uint16_t op, std::uint16_t type) {
  return check_reduce(op_of(op), predefined_type(type), ReduceUse::reduction).error == ErrorClass::success;
}

/// Which pairs a test has seen.
std::set<std::pair<std::uint16_t, std::uint16_t>>& seen() {
  static std::set<std::pair<std::uint16_t, std::uint16_t>> pairs;
  return pairs;
}

template <typename T, typename Make, typename Combine>
void expect_op(std::uint16_t op, std::uint16_t type, Make make, Combine combine) {
  ASSERT_TRUE(allowed(op, type)) << op_of(op).name() << " " << predefined_type(type).name();
  seen().emplace(op, type);
  std::mt19937 random(op);
  std::vector<T> in, inout, expected;
  for (Count i = 0; i < kCount; ++i) {
    in.push_back(make(random));
    inout.push_back(make(random));
    expected.push_back(combine(in.back(), inout.back()));
  }
  reduce_local(op_of(op), in.data(), inout.data(), kCount, predefined_type(type));
  EXPECT_EQ(inout, expected) << op_of(op).name() << " " << predefined_type(type).name();
}

template <typename T>
void expect_ordered(std::uint16_t type) {
  const auto make = [](std::mt19937& random) { return static_cast<T>(random() % 11); };
  expect_op<T>(kSum, type, make, [](T a, T b) { return static_cast<T>(a + b); });
  expect_op<T>(kProd, type, make, [](T a, T b) { return static_cast<T>(a * b); });
  expect_op<T>(kMin, type, make, [](T a, T b) { return b < a ? b : a; });
  expect_op<T>(kMax, type, make, [](T a, T b) { return a < b ? b : a; });
}
template <typename T>
void expect_bits(std::uint16_t type) {
  const auto make = [](std::mt19937& random) { return static_cast<T>(random()); };
  expect_op<T>(kBand, type, make, [](T a, T b) { return static_cast<T>(a & b); });
  expect_op<T>(kBor, type, make, [](T a, T b) { return static_cast<T>(a | b); });
  expect_op<T>(kBxor, type, make, [](T a, T b) { return static_cast<T>(a ^ b); });
}
template <typename T>
void expect_truths(std::uint16_t type) {
  const auto make = [](std::mt19937& random) { return static_cast<T>(random() % 2); };
  expect_op<T>(kLand, type, make, [](T a, T b) { return static_cast<T>(a && b); });
  expect_op<T>(kLor, type, make, [](T a, T b) { return static_cast<T>(a || b); });
  expect_op<T>(kLxor, type, make, [](T a, T b) { return static_cast<T>(!a != !b); });
}
template <typename T>
void expect_c_integer(std::uint16_t type) {
  expect_ordered<T>(type);
  expect_bits<T>(type);
  expect_truths<T>(type);
}
template <typename T>
void expect_integer(std::uint16_t type) {
  expect_ordered<T>(type);
  expect_bits<T>(type);
}
template <typename T>
void expect_complex(std::uint16_t type) {
  using Complex = std::complex<T>;
  const auto make = [](std::mt19937& random) {
    return Complex(static_cast<T>(random() % 9), static_cast<T>(random() % 9));
  };
  expect_op<Complex>(kSum, type, make, [](Complex a, Complex b) { return a + b; });
  expect_op<Complex>(kProd, type, make, [](Complex a, Complex b) {
    return Complex(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  });
}

template <typename V, typename P>
struct Pair {
  V value;
  P place;
  bool operator==(const Pair&) const = default;
};
template <typename V, typename P>
void expect_pairs(std::uint16_t type) {
  using Both = Pair<V, P>;
  ASSERT_EQ(predefined_type(type).extent(), static_cast<Count>(sizeof(Both)));
  const auto make = [](std::mt19937& random) {
    return Both{static_cast<V>(random() % 4), static_cast<P>(random() % 50)};
  };
  expect_op<Both>(kMinloc, type, make, [](Both a, Both b) {
    if (a.value != b.value) return b.value < a.value ? b : a;
    return b.place < a.place ? b : a;
  });
  expect_op<Both>(kMaxloc, type, make, [](Both a, Both b) {
    if (a.value != b.value) return a.value < b.value ? b : a;
    return b.place < a.place ? b : a;
  });
}

/// Floats of 16 bits as words: small whole numbers, whose sums and products are exact.
std::uint16_t half_of(unsigned number) {
  static constexpr std::uint16_t kHalves[] = {0,      0x3c00, 0x4000, 0x4200, 0x4400,
                                              0x4500, 0x4600, 0x4700, 0x4800, 0x4880};
  return kHalves[number];
}

TEST(Reduce, CombinesEveryTypeByEveryOperation) {
  seen().clear();
  expect_c_integer<short>(0x208);
  expect_c_integer<int>(0x209);
  expect_c_integer<long>(0x20a);
  expect_c_integer<long long>(0x20b);
  expect_c_integer<unsigned short>(0x20c);
  expect_c_integer<unsigned>(0x20d);
  expect_c_integer<unsigned long>(0x20e);
  expect_c_integer<unsigned long long>(0x20f);
  expect_c_integer<std::int8_t>(0x240);
  expect_c_integer<std::uint8_t>(0x241);
  expect_c_integer<signed char>(0x244);
  expect_c_integer<unsigned char>(0x245);
  expect_c_integer<std::int16_t>(0x248);
  expect_c_integer<std::uint16_t>(0x249);
  expect_c_integer<std::int32_t>(0x250);
  expect_c_integer<std::uint32_t>(0x251);
  expect_c_integer<std::int64_t>(0x258);
  expect_c_integer<std::uint64_t>(0x259);
  for (const std::uint16_t type : std::initializer_list<std::uint16_t>{0x201, 0x202, 0x203})
    expect_integer<std::int64_t>(type);
  expect_integer<std::int32_t>(0x219);
  expect_integer<std::int8_t>(0x2c1);
  expect_integer<std::int16_t>(0x2c9);
  expect_integer<std::int32_t>(0x2d1);
  expect_integer<std::int64_t>(0x2d9);
  __extension__ using Wide = __int128;
  expect_integer<Wide>(0x2e1);
  for (const std::uint16_t type : std::initializer_list<std::uint16_t>{0x210, 0x21a, 0x2d2})
    expect_ordered<float>(type);
  for (const std::uint16_t type : std::initializer_list<std::uint16_t>{0x214, 0x21c, 0x2da})
    expect_ordered<double>(type);
  expect_ordered<long double>(0x220);
  for (const std::uint16_t type : std::initializer_list<std::uint16_t>{0x212, 0x213, 0x21b, 0x2db})
    expect_complex<float>(type);
  for (const std::uint16_t type : std::initializer_list<std::uint16_t>{0x216, 0x217, 0x21d, 0x2e3})
    expect_complex<double>(type);
  for (const std::uint16_t type : std::initializer_list<std::uint16_t>{0x224, 0x225}) expect_complex<long double>(type);
  for (const std::uint16_t type : std::initializer_list<std::uint16_t>{0x238, 0x239, 0x2c0})
    expect_truths<std::int8_t>(type);
  for (const std::uint16_t type : std::initializer_list<std::uint16_t>{0x218, 0x2d0}) expect_truths<std::int32_t>(type);
  expect_truths<std::int16_t>(0x2c8);
  expect_truths<std::int64_t>(0x2d8);
  expect_truths<Wide>(0x2e0);
  expect_bits<std::uint8_t>(0x247);
  expect_pairs<float, int>(0x228);
  expect_pairs<double, int>(0x229);
  expect_pairs<long, int>(0x22a);
  expect_pairs<int, int>(0x22b);
  expect_pairs<short, int>(0x22c);
  expect_pairs<long double, int>(0x22d);
  expect_pairs<float, float>(0x230);
  expect_pairs<double, double>(0x231);
  expect_pairs<int, int>(0x232);
#ifdef __SIZEOF_FLOAT128__
  __extension__ using Quad = __float128;
  // EXPECT_EQ does not print them.
  for (const std::uint16_t op : {kSum, kProd, kMin, kMax}) {
    seen().emplace(op, 0x2e2);
    ASSERT_TRUE(allowed(op, 0x2e2));
    Quad in = 3, inout = 4;
    reduce_local(op_of(op), &in, &inout, 1, predefined_type(0x2e2));
    EXPECT_TRUE(inout == (op == kSum ? 7 : op == kProd ? 12 : op == kMin ? 3 : 4));
  }
  for (const std::uint16_t op : {kSum, kProd}) {
    seen().emplace(op, 0x2eb);
    ASSERT_TRUE(allowed(op, 0x2eb));
    Quad in[2] = {1, 2}, inout[2] = {3, 4};
    reduce_local(op_of(op), in, inout, 1, predefined_type(0x2eb));
    EXPECT_TRUE(op == kSum ? inout[0] == 4 && inout[1] == 6 : inout[0] == -5 && inout[1] == 10);
  }
#else
  for (const std::uint16_t op : {kSum, kProd, kMin, kMax}) seen().emplace(op, 0x2e2);
  for (const std::uint16_t op : {kSum, kProd}) seen().emplace(op, 0x2eb);
#endif
  for (const std::uint16_t op : {kSum, kProd, kMin, kMax}) {
    seen().emplace(op, 0x2ca);
    std::uint16_t in[2] = {half_of(2), half_of(3)}, inout[2] = {half_of(3), half_of(2)};
    reduce_local(op_of(op), in, inout, 2, predefined_type(0x2ca));
    EXPECT_EQ(inout[1], half_of(op == kSum ? 5 : op == kProd ? 6 : op == kMin ? 2 : 3));
    EXPECT_EQ(inout[0], inout[1]);
  }
  for (const std::uint16_t op : {kSum, kProd}) {
    seen().emplace(op, 0x2d3);
    std::uint16_t in[2] = {half_of(3), half_of(1)}, inout[2] = {half_of(2), half_of(1)};
    reduce_local(op_of(op), in, inout, 1, predefined_type(0x2d3));
    EXPECT_EQ(inout[0], half_of(5));
    EXPECT_EQ(inout[1], half_of(op == kSum ? 2 : 5));
  }

  // And nothing else is allowed.
  for (std::uint16_t op = 0x20; op < 0x40; ++op) {
    if (find_op(op_handle(op)) == nullptr) continue;
    for (std::uint16_t type = kFirstType; type < kFirstType + kTypeNumbers; ++type) {
      if (find_datatype(type_handle(type)) == nullptr) continue;
      EXPECT_EQ(allowed(op, type), seen().contains({op, type}))
          << op_of(op).name() << " " << predefined_type(type).name();
    }
  }
}

TEST(Reduce, WrapsAroundForShortAndLongCounts) {
  for (const Count count : {Count{1}, Count{7}, Count{64}, Count{1000}}) {
    std::vector<std::int8_t> in(static_cast<std::size_t>(count), 100), inout(in);
    reduce_local(op_of(kSum), in.data(), inout.data(), count, predefined_type(0x240));
    for (const std::int8_t value : inout) ASSERT_EQ(value, -56);
  }
}

TEST(Reduce, SaysWhatIsNotAllowed) {
  const Fault fault = check_reduce(op_of(kBand), predefined_type(0x214), ReduceUse::reduction);
  EXPECT_EQ(fault.error, ErrorClass::op);
  EXPECT_EQ(fault.text, "MPI_BAND is not defined for MPI_DOUBLE");
  EXPECT_EQ(check_reduce(op_of(kReplace), predefined_type(0x209), ReduceUse::reduction).error, ErrorClass::op);
  EXPECT_EQ(check_reduce(op_of(kNoOp), predefined_type(0x209), ReduceUse::accumulate).error, ErrorClass::success);
  const Made made = contiguous_type(2, &predefined_type(0x209));
  EXPECT_EQ(check_reduce(op_of(kSum), *made.type, ReduceUse::reduction).error, ErrorClass::op);
  EXPECT_EQ(check_reduce(op_of(kSum), *made.type, ReduceUse::accumulate).error, ErrorClass::success);
  EXPECT_EQ(check_reduce(op_of(kSum), *dup_type(&predefined_type(0x209)).type, ReduceUse::reduction).error,
            ErrorClass::success);
  const Made mixed = struct_type(Numbers{1, 1}, Numbers{0, 8},
                                 std::vector<Datatype*>{&predefined_type(0x209), &predefined_type(0x214)});
  EXPECT_EQ(check_reduce(op_of(kSum), *mixed.type, ReduceUse::accumulate).error, ErrorClass::op);
  EXPECT_EQ(check_reduce(op_of(kReplace), *mixed.type, ReduceUse::accumulate).error, ErrorClass::success);
}

TEST(Reduce, AccumulatesInTypesOfOneElement) {
  const Made column = vector_type(3, 1, 2, &predefined_type(0x209));
  int in[] = {1, 90, 2, 90, 3, 90}, inout[] = {10, 80, 20, 80, 30, 80};
  reduce_local(op_of(kSum), in, inout, 1, *column.type);
  EXPECT_EQ(std::vector<int>(inout, inout + 6), (std::vector<int>{11, 80, 22, 80, 33, 80}));
  reduce_local(op_of(kReplace), in, inout, 1, *column.type);
  EXPECT_EQ(std::vector<int>(inout, inout + 6), (std::vector<int>{1, 80, 2, 80, 3, 80}));
  reduce_local(op_of(kNoOp), in + 1, inout, 1, *column.type);
  EXPECT_EQ(inout[0], 1);

  // Pairs with a gap between value and place, and with one behind them.
  const auto least = []<typename V>(std::uint16_t number, V) {
    using Both = Pair<V, int>;
    const Made two = contiguous_type(2, &predefined_type(number));
    std::vector<Both> a = {{1, 5}, {2, 6}, {3, 7}, {4, 8}}, b = {{2, 1}, {1, 1}, {3, 1}, {9, 9}};
    reduce_local(op_of(kMinloc), a.data(), b.data(), 2, *two.type);
    EXPECT_EQ(b, (std::vector<Both>{{1, 5}, {1, 1}, {3, 1}, {4, 8}})) << number;
  };
  least(0x22c, short{});
  least(0x229, double{});
  least(0x22b, int{});
}

TEST(Reduce, KnowsWhatBrantCanDo) {
  const auto known = [](std::uint16_t op, std::uint16_t type) {
    return brant_reduction(op_of(op), predefined_type(type));
  };
  EXPECT_EQ(known(kSum, 0x214)->type, DataType::f64);
  EXPECT_EQ(known(kSum, 0x214)->op, ReduceOp::sum);
  EXPECT_EQ(known(kBor, 0x247)->type, DataType::u8);
  EXPECT_EQ(known(kLxor, 0x238)->type, DataType::boolean);
  EXPECT_EQ(known(kMinloc, 0x22b)->type, DataType::i32_i32);
  EXPECT_EQ(known(kSum, 0x216)->elements, 2);
  EXPECT_FALSE(known(kProd, 0x216));
  EXPECT_FALSE(known(kSum, 0x220));
  EXPECT_FALSE(known(kMaxloc, 0x229));
  EXPECT_FALSE(known(kReplace, 0x209));
  EXPECT_FALSE(known(kBand, 0x214));
}

void keep_larger(void* in, void* inout, int* count, MPI_Datatype* type) {
  const Count extent = find_datatype(*type)->extent();
  for (int i = 0; i < *count; ++i) {
    const auto& from = *reinterpret_cast<const int*>(static_cast<std::byte*>(in) + i * extent);
    auto& to = *reinterpret_cast<int*>(static_cast<std::byte*>(inout) + i * extent);
    if (to < from) to = from;
  }
}
void count_elements(void*, void* inout, Count* count, MPI_Datatype*) { *static_cast<Count*>(inout) += *count; }
void count_calls(void*, void* inout, int* count, MPI_Datatype*) {
  static_cast<Count*>(inout)[0] += *count;
  static_cast<Count*>(inout)[1] += 1;
}

TEST(Operations, OfProgramsAreCalledAsTheStandardSays) {
  Op* const op = new Op(keep_larger, nullptr, true);
  EXPECT_EQ(find_op(op->handle()), op);
  EXPECT_TRUE(op->commutes());
  const Made spaced = resized_type(&predefined_type(0x209), 0, 8);
  int in[] = {1, 0, 5, 0}, inout[] = {3, 9, 2, 9};
  reduce_local(*op, in, inout, 2, *spaced.type);
  EXPECT_EQ(std::vector<int>(inout, inout + 4), (std::vector<int>{3, 9, 5, 9}));
  EXPECT_EQ(check_reduce(*op, *spaced.type, ReduceUse::accumulate).error, ErrorClass::op);
  op->release();
}

TEST(Operations, TakeAnyCount) {
  // Items without extent, so that the counts may be larger than any memory.
  const Made flat = resized_type(&predefined_type(0x258), 0, 0);
  Count in = 0, inout[2] = {0, 0};
  const Count count = 3 * Count{std::numeric_limits<int>::max()} + 5;
  Op* const large = new Op(nullptr, count_elements, false);
  reduce_local(*large, &in, inout, count, *flat.type);
  EXPECT_EQ(inout[0], count);
  EXPECT_FALSE(large->commutes());
  large->release();
  Op* const small = new Op(count_calls, nullptr, false);
  inout[0] = 0;
  reduce_local(*small, &in, inout, count, *flat.type);
  EXPECT_EQ(inout[0], count);
  EXPECT_EQ(inout[1], 4);
  small->release();
}

TEST(Operations, AreFoundByTheirHandles) {
  for (std::uintptr_t number = 0; number <= kLastPredefined; ++number) {
    const Op* op = find_op(op_handle(number));
    if (op != nullptr) {
      EXPECT_EQ(op->handle(), op_handle(number));
    }
    ASSERT_LE(op != nullptr ? 1u : 0u, number >= 0x21 && number <= 0x3d ? 1u : 0u) << number;
  }
  EXPECT_EQ(op_of(kSum).name(), "MPI_SUM");
  EXPECT_EQ(find_op(predefined_type(0x209).handle() == nullptr ? nullptr : op_handle(0x209)), nullptr);
}

}  // namespace
}  // namespace brant::mpi
