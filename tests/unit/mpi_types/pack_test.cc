// Packing at speed, and from anywhere; external32 as the standard writes it.
#include "models/mpi/types/pack.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "models/mpi/types/constructors.h"
#include "models/mpi/types/external.h"
#include "models/mpi/types/signature.h"
#include "support/effort.h"

namespace brant::mpi {
namespace {

using Numbers = std::vector<Count>;
using Bytes = std::vector<std::byte>;

// Each of the sizes of runs that have a loop of their own, and their neighbours; strides of either sign; lists.
TEST(Pack, CopiesRunsOfAnySize) {
  for (Count run = 1; run <= 70; ++run) {
    for (const Count stride : {run + 1, run + 13, -(run + 3)}) {
      const Count count = 37;
      std::vector<unsigned char> memory(static_cast<std::size_t>(count * std::abs(stride) + run));
      std::iota(memory.begin(), memory.end(), static_cast<unsigned char>(run));
      unsigned char* const base = memory.data() + (stride < 0 ? -(count - 1) * stride : 0);
      Numbers places;
      for (Count i = 0; i < count; ++i) places.push_back(i * stride);
      std::rotate(places.begin(), places.begin() + 5, places.end());
      const Made loop = hvector_type(count, run, stride, &predefined_type(0x247));
      const Made list = hindexed_block_type(run, places, &predefined_type(0x247));
      for (const Made* made : {&loop, &list}) {
        Bytes packed(static_cast<std::size_t>(count * run));
        pack(base, 1, *made->type, 0, packed);
        std::vector<unsigned char> copy(memory.size(), 0), expected(memory.size(), 0);
        for (Count i = 0; i < count; ++i) {
          const Count place = made == &loop ? i * stride : places[static_cast<std::size_t>(i)];
          ASSERT_EQ(std::memcmp(packed.data() + i * run, base + place, static_cast<std::size_t>(run)), 0) << run;
          std::memcpy(expected.data() + (base - memory.data()) + place, base + place, static_cast<std::size_t>(run));
        }
        unpack(packed, 0, copy.data() + (base - memory.data()), 1, *made->type);
        ASSERT_EQ(copy, expected) << run << " " << stride;
      }
    }
  }
}

TEST(Pack, TakesAbsoluteAddresses) {
  const int first = 5;
  const double second = 7;
  const Numbers places = {reinterpret_cast<Count>(&first), reinterpret_cast<Count>(&second)};
  const Made made =
      struct_type(Numbers{1, 1}, places, std::vector<Datatype*>{&predefined_type(0x209), &predefined_type(0x214)});
  ASSERT_TRUE(made.ok()) << made.fault.text;
  std::array<std::byte, 12> packed;
  pack(nullptr, 1, *made.type, 0, packed);
  EXPECT_EQ(std::memcmp(packed.data(), &first, 4), 0);
  EXPECT_EQ(std::memcmp(packed.data() + 4, static_cast<const void*>(&second), 8), 0);
}

TEST(Pack, StopsAtTheEnd) {
  const std::array<int, 6> memory = {1, 2, 3, 4, 5, 6};
  const Made made = vector_type(2, 1, 2, &predefined_type(0x209));
  Bytes packed(40, std::byte{9});
  pack(memory.data(), 1, *made.type, 4, packed);
  EXPECT_EQ(packed[3], std::byte{0});
  EXPECT_EQ(packed[4], std::byte{9});
  pack(memory.data(), 1, *made.type, 8, packed);
  pack(memory.data(), 1, *made.type, -1, packed);
  pack(memory.data(), 0, *made.type, 0, packed);
  EXPECT_EQ(packed[4], std::byte{9});
}

TEST(External, IsWhatTheStandardSays) {
  const auto packed_as = [](std::uint16_t number, const auto& value, const std::vector<unsigned>& expected) {
    const Datatype& type = predefined_type(number);
    Bytes packed(static_cast<std::size_t>(external_bytes(type, 1)));
    EXPECT_TRUE(pack_external(&value, 1, type, packed));
    Bytes bytes;
    for (const unsigned byte : expected) bytes.push_back(static_cast<std::byte>(byte));
    EXPECT_EQ(packed, bytes) << type.name();
    auto back = value;
    std::memset(&back, 0x33, sizeof(back));
    unpack_external(packed, &back, 1, type);
    EXPECT_TRUE(back == value) << type.name();
  };
  packed_as(0x20a, -2L, {0xff, 0xff, 0xff, 0xfe});
  packed_as(0x20e, 258UL, {0, 0, 1, 2});
  packed_as(0x20b, 258LL, {0, 0, 0, 0, 0, 0, 1, 2});
  packed_as(0x23c, L'\x1234', {0x12, 0x34});
  packed_as(0x238, true, {1});
  packed_as(0x214, 1.0, {0x3f, 0xf0, 0, 0, 0, 0, 0, 0});
  packed_as(0x220, -1.5L, {0xbf, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  packed_as(0x220, 0.0L, std::vector<unsigned>(16, 0));
  const long large = 1L << 40;
  Bytes packed(4);
  EXPECT_FALSE(pack_external(&large, 1, predefined_type(0x20a), packed));
}

TEST(External, KeepsAllLongDoubles) {
  std::mt19937_64 random(3);
  using Limits = std::numeric_limits<long double>;
  std::vector<long double> values = {Limits::min(),      Limits::max(),        -Limits::max(),
                                     Limits::infinity(), Limits::denorm_min(), Limits::min() / 3};
  for (int i = 0; i < 2000; ++i) {
    long double value = static_cast<long double>(random());
    for (auto k = random() % 100; k != 0; --k) value *= random() % 2 == 0 ? 1e13L : 1e-13L;
    values.push_back(value);
  }
  const auto count = static_cast<Count>(values.size());
  const Datatype& type = predefined_type(0x220);
  Bytes packed(static_cast<std::size_t>(external_bytes(type, count)));
  EXPECT_TRUE(pack_external(values.data(), count, type, packed));
  std::vector<long double> back(values.size());
  unpack_external(packed, back.data(), count, type);
  EXPECT_EQ(back, values);
#ifdef __SIZEOF_FLOAT128__
  for (std::size_t i = 0; i < values.size(); ++i) {
    __extension__ using Quad = __float128;
    Bytes quad(packed.begin() + static_cast<std::ptrdiff_t>(16 * i),
               packed.begin() + static_cast<std::ptrdiff_t>(16 * i + 16));
    std::reverse(quad.begin(), quad.end());
    const Quad expected = static_cast<Quad>(values[i]);
    EXPECT_EQ(std::memcmp(quad.data(), static_cast<const void*>(&expected), 16), 0) << values[i];
  }
  // And what a long double does not hold is rounded as by the compiler.
  for (int i = 0; i < 5000; ++i) {
    __extension__ using Quad = __float128;
    const Quad value = static_cast<Quad>(random()) / static_cast<Quad>(random()) * (i % 2 == 0 ? 1 : -1);
    Bytes quad(16);
    std::memcpy(quad.data(), &value, 16);
    std::reverse(quad.begin(), quad.end());
    long double rounded = 0;
    unpack_external(quad, &rounded, 1, type);
    EXPECT_EQ(rounded, static_cast<long double>(value));
  }
#endif
}

/// GB/s of bytes packed, the best of some.
double speed(const Datatype& type, const std::byte* memory, Bytes& packed, bool packs) {
  double best = 0;
  for (int i = 0; i < 15; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (packs) {
      pack(memory, 1, type, 0, packed);
    } else {
      unpack(packed, 0, const_cast<std::byte*>(memory), 1, type);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(packed.size()) / took.count() * 1e-9);
  }
  return best;
}

// Says how fast it is; a machine under load fails no test.
TEST(Pack, Speed) {
  if (brant::test::kSanitized) GTEST_SKIP() << "no speed to be had under a sanitizer";
  constexpr Count kEdge = 512;
  Datatype* const number = &predefined_type(0x214);
  Bytes memory(static_cast<std::size_t>(kEdge * kEdge * 40 * 8), std::byte{1});
  Bytes packed(static_cast<std::size_t>(kEdge * kEdge * 8));
  const Made column = vector_type(kEdge * kEdge, 1, 5, number);
  const Made rows = vector_type(kEdge, kEdge, 20 * kEdge, number);
  const Made nested = hvector_type(kEdge, 1, 160 * kEdge, vector_type(kEdge, 1, 20, number).type.get());
  Numbers places;
  std::minstd_rand random(5);
  for (Count i = 0; i < kEdge * kEdge; ++i) places.push_back(5 * i + static_cast<Count>(random() % 5));
  const Made list = indexed_block_type(1, places, number);
  Bytes copy(packed.size());
  double plain = 0;
  for (int i = 0; i < 15; ++i) {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(copy.data(), packed.data(), copy.size());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    plain = std::max(plain, static_cast<double>(copy.size()) / took.count() * 1e-9);
  }
  std::printf("512 x 512 doubles, GB/s: memcpy %.1f", plain);
  const auto say = [&](const char* name, const Made& made) {
    const double packing = speed(*made.type, memory.data(), packed, true);
    std::printf("; %s pack %.1f unpack %.1f", name, packing, speed(*made.type, memory.data(), packed, false));
  };
  say("every 5th double", column);
  say("every 20th, nested", nested);
  say("rows", rows);
  say("list", list);
  std::printf("\n");
}

}  // namespace
}  // namespace brant::mpi
