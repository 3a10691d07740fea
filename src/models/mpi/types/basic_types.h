#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "models/mpi/types/abi.h"

namespace brant::mpi {

/// What is stored in an element of a predefined type, in C's words.
enum class Representation : std::uint8_t {
  none,  ///< Bytes that nobody converts: MPI_BYTE, MPI_PACKED, characters.
  signed_integer,
  unsigned_integer,
  real,
  complex,
  boolean,    ///< A whole number of which 0 is false.
  wide_char,  ///< wchar_t
  pair,       ///< A value and a place.
};

/// The groups of types by which the standard says which operations are allowed.
enum class TypeGroup : std::uint8_t {
  none,
  c_integer,
  fortran_integer,
  real,
  logical,
  complex,
  byte,
  multi_language,
  pair
};

/// What is known of a predefined type.
struct BasicType {
  std::uint16_t number = 0;  ///< Of its handle; 0: there is no such type.
  std::string_view name;
  std::uint32_t bytes = 0;      ///< Of both parts of a pair, without what is between them.
  std::uint32_t alignment = 1;  ///< Of C.
  std::uint32_t external = 0;   ///< Bytes in external32.
  Representation representation = Representation::none;
  TypeGroup group = TypeGroup::none;
  std::uint16_t value = 0;  ///< Of pairs: the numbers of the two parts.
  std::uint16_t place = 0;
};

inline constexpr std::uint16_t kFirstType = 0x200;
inline constexpr std::uint16_t kTypeNumbers = 0xec;

/// By the number of the handle less kFirstType, which is what layouts tell of their bytes; `number` is 0 where there is
/// no type.
const BasicType& basic_type(std::uint16_t place) noexcept;

}  // namespace brant::mpi
