#include "models/mpi/types/basic_types.h"

#include <algorithm>
#include <array>
#include <complex>

namespace brant::mpi {
namespace {

__extension__ using Int128 = __int128;
/// Of 16 bytes, as Fortran's real(16): no type of standard C++.
struct alignas(16) QuadBytes {
  std::byte bytes[16];
};
struct QuadPair {
  QuadBytes parts[2];
};
struct Halves {
  std::uint16_t parts[2];
};

using R = Representation;
using G = TypeGroup;

template <typename T>
constexpr BasicType element(std::uint16_t number, std::string_view name, R representation, G group,
                            std::uint32_t external) {
  return {number, name, sizeof(T), alignof(T), external, representation, group, 0, 0};
}

constexpr BasicType kElements[] = {
    element<std::intptr_t>(0x201, "MPI_AINT", R::signed_integer, G::multi_language, 8),
    element<std::int64_t>(0x202, "MPI_COUNT", R::signed_integer, G::multi_language, 8),
    element<std::int64_t>(0x203, "MPI_OFFSET", R::signed_integer, G::multi_language, 8),
    element<char>(0x207, "MPI_PACKED", R::none, G::none, 1),
    element<short>(0x208, "MPI_SHORT", R::signed_integer, G::c_integer, 2),
    element<int>(0x209, "MPI_INT", R::signed_integer, G::c_integer, 4),
    element<long>(0x20a, "MPI_LONG", R::signed_integer, G::c_integer, 4),
    element<long long>(0x20b, "MPI_LONG_LONG_INT", R::signed_integer, G::c_integer, 8),
    element<unsigned short>(0x20c, "MPI_UNSIGNED_SHORT", R::unsigned_integer, G::c_integer, 2),
    element<unsigned>(0x20d, "MPI_UNSIGNED", R::unsigned_integer, G::c_integer, 4),
    element<unsigned long>(0x20e, "MPI_UNSIGNED_LONG", R::unsigned_integer, G::c_integer, 4),
    element<unsigned long long>(0x20f, "MPI_UNSIGNED_LONG_LONG", R::unsigned_integer, G::c_integer, 8),
    element<float>(0x210, "MPI_FLOAT", R::real, G::real, 4),
    element<std::complex<float>>(0x212, "MPI_C_FLOAT_COMPLEX", R::complex, G::complex, 8),
    element<std::complex<float>>(0x213, "MPI_CXX_FLOAT_COMPLEX", R::complex, G::complex, 8),
    element<double>(0x214, "MPI_DOUBLE", R::real, G::real, 8),
    element<std::complex<double>>(0x216, "MPI_C_DOUBLE_COMPLEX", R::complex, G::complex, 16),
    element<std::complex<double>>(0x217, "MPI_CXX_DOUBLE_COMPLEX", R::complex, G::complex, 16),
    element<std::int32_t>(0x218, "MPI_LOGICAL", R::boolean, G::logical, 4),
    element<std::int32_t>(0x219, "MPI_INTEGER", R::signed_integer, G::fortran_integer, 4),
    element<float>(0x21a, "MPI_REAL", R::real, G::real, 4),
    element<std::complex<float>>(0x21b, "MPI_COMPLEX", R::complex, G::complex, 8),
    element<double>(0x21c, "MPI_DOUBLE_PRECISION", R::real, G::real, 8),
    element<std::complex<double>>(0x21d, "MPI_DOUBLE_COMPLEX", R::complex, G::complex, 16),
    element<char>(0x21e, "MPI_CHARACTER", R::none, G::none, 1),
    element<long double>(0x220, "MPI_LONG_DOUBLE", R::real, G::real, 16),
    element<std::complex<long double>>(0x224, "MPI_C_LONG_DOUBLE_COMPLEX", R::complex, G::complex, 32),
    element<std::complex<long double>>(0x225, "MPI_CXX_LONG_DOUBLE_COMPLEX", R::complex, G::complex, 32),
    element<bool>(0x238, "MPI_C_BOOL", R::boolean, G::logical, 1),
    element<bool>(0x239, "MPI_CXX_BOOL", R::boolean, G::logical, 1),
    element<wchar_t>(0x23c, "MPI_WCHAR", R::wide_char, G::none, 2),
    element<std::int8_t>(0x240, "MPI_INT8_T", R::signed_integer, G::c_integer, 1),
    element<std::uint8_t>(0x241, "MPI_UINT8_T", R::unsigned_integer, G::c_integer, 1),
    element<char>(0x243, "MPI_CHAR", R::none, G::none, 1),
    element<signed char>(0x244, "MPI_SIGNED_CHAR", R::signed_integer, G::c_integer, 1),
    element<unsigned char>(0x245, "MPI_UNSIGNED_CHAR", R::unsigned_integer, G::c_integer, 1),
    element<std::byte>(0x247, "MPI_BYTE", R::none, G::byte, 1),
    element<std::int16_t>(0x248, "MPI_INT16_T", R::signed_integer, G::c_integer, 2),
    element<std::uint16_t>(0x249, "MPI_UINT16_T", R::unsigned_integer, G::c_integer, 2),
    element<std::int32_t>(0x250, "MPI_INT32_T", R::signed_integer, G::c_integer, 4),
    element<std::uint32_t>(0x251, "MPI_UINT32_T", R::unsigned_integer, G::c_integer, 4),
    element<std::int64_t>(0x258, "MPI_INT64_T", R::signed_integer, G::c_integer, 8),
    element<std::uint64_t>(0x259, "MPI_UINT64_T", R::unsigned_integer, G::c_integer, 8),
    element<std::int8_t>(0x2c0, "MPI_LOGICAL1", R::boolean, G::logical, 1),
    element<std::int8_t>(0x2c1, "MPI_INTEGER1", R::signed_integer, G::fortran_integer, 1),
    element<std::int16_t>(0x2c8, "MPI_LOGICAL2", R::boolean, G::logical, 2),
    element<std::int16_t>(0x2c9, "MPI_INTEGER2", R::signed_integer, G::fortran_integer, 2),
    element<std::uint16_t>(0x2ca, "MPI_REAL2", R::real, G::real, 2),
    element<std::int32_t>(0x2d0, "MPI_LOGICAL4", R::boolean, G::logical, 4),
    element<std::int32_t>(0x2d1, "MPI_INTEGER4", R::signed_integer, G::fortran_integer, 4),
    element<float>(0x2d2, "MPI_REAL4", R::real, G::real, 4),
    element<Halves>(0x2d3, "MPI_COMPLEX4", R::complex, G::complex, 4),
    element<std::int64_t>(0x2d8, "MPI_LOGICAL8", R::boolean, G::logical, 8),
    element<std::int64_t>(0x2d9, "MPI_INTEGER8", R::signed_integer, G::fortran_integer, 8),
    element<double>(0x2da, "MPI_REAL8", R::real, G::real, 8),
    element<std::complex<float>>(0x2db, "MPI_COMPLEX8", R::complex, G::complex, 8),
    element<Int128>(0x2e0, "MPI_LOGICAL16", R::boolean, G::logical, 16),
    element<Int128>(0x2e1, "MPI_INTEGER16", R::signed_integer, G::fortran_integer, 16),
    element<QuadBytes>(0x2e2, "MPI_REAL16", R::real, G::real, 16),
    element<std::complex<double>>(0x2e3, "MPI_COMPLEX16", R::complex, G::complex, 16),
    element<QuadPair>(0x2eb, "MPI_COMPLEX32", R::complex, G::complex, 32),
};

struct PairRow {
  std::uint16_t number;
  std::string_view name;
  std::uint16_t value;
  std::uint16_t place;
};
constexpr PairRow kPairs[] = {
    {0x228, "MPI_FLOAT_INT", 0x210, 0x209}, {0x229, "MPI_DOUBLE_INT", 0x214, 0x209},
    {0x22a, "MPI_LONG_INT", 0x20a, 0x209},  {0x22b, "MPI_2INT", 0x209, 0x209},
    {0x22c, "MPI_SHORT_INT", 0x208, 0x209}, {0x22d, "MPI_LONG_DOUBLE_INT", 0x220, 0x209},
    {0x230, "MPI_2REAL", 0x21a, 0x21a},     {0x231, "MPI_2DOUBLE_PRECISION", 0x21c, 0x21c},
    {0x232, "MPI_2INTEGER", 0x219, 0x219},
};

constexpr auto make_table() {
  std::array<BasicType, kTypeNumbers> table{};
  for (const BasicType& type : kElements) table[type.number - kFirstType] = type;
  for (const PairRow& pair : kPairs) {
    const BasicType& value = table[pair.value - kFirstType];
    const BasicType& place = table[pair.place - kFirstType];
    table[pair.number - kFirstType] = {pair.number,
                                       pair.name,
                                       value.bytes + place.bytes,
                                       std::max(value.alignment, place.alignment),
                                       value.external + place.external,
                                       R::pair,
                                       G::pair,
                                       pair.value,
                                       pair.place};
  }
  return table;
}
constexpr std::array<BasicType, kTypeNumbers> kTable = make_table();

/// Handles of types of a fixed size say it themselves.
constexpr bool sizes_agree() {
  return std::all_of(kTable.begin(), kTable.end(), [](const BasicType& type) {
    return (type.number & ~0x3fu) != 0x240 || type.bytes == 1u << (type.number >> 3 & 7u);
  });
}
static_assert(sizes_agree());

}  // namespace

const BasicType& basic_type(std::uint16_t place) noexcept { return kTable[place < kTypeNumbers ? place : 0]; }

}  // namespace brant::mpi
