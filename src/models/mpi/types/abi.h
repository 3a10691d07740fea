#pragma once

#include <cstddef>
#include <cstdint>

/// The handles that the standard's ABI gives to datatypes and operations: pointers to types that nobody defines.
/// Predefined ones are small numbers; any other points to an object of ours.
typedef struct MPI_ABI_Datatype* MPI_Datatype;  // NOLINT(modernize-use-using): as mpi.h says it
typedef struct MPI_ABI_Op* MPI_Op;              // NOLINT(modernize-use-using)

/// The numbers of the standard's ABI that types and operations need. They have other names than in mpi.h, whose names
/// are macros, so that both can be included.
namespace brant::mpi {

using Count = std::int64_t;

/// Handles above this one are pointers.
inline constexpr std::uintptr_t kLastPredefined = 0xfff;

inline std::uintptr_t handle_number(const void* handle) noexcept { return reinterpret_cast<std::uintptr_t>(handle); }
/// Whether a handle that is not predefined may point to an object of the program: what is no address of its memory must
/// not be looked at. `alignment`: of the object.
inline bool may_point_to_object(std::uintptr_t number, std::size_t alignment) noexcept {
  constexpr unsigned kAddressBits = 48;  // of what a program is given, on all machines of 64 bits
  return number % alignment == 0 && number >> kAddressBits == 0;
}
inline MPI_Datatype type_handle(std::uintptr_t number) noexcept { return reinterpret_cast<MPI_Datatype>(number); }
inline MPI_Op op_handle(std::uintptr_t number) noexcept { return reinterpret_cast<MPI_Op>(number); }

/// What calls return.
enum class ErrorClass : int {
  success = 0,
  buffer = 1,
  count = 2,
  type = 3,
  op = 10,
  dims = 12,
  arg = 13,
  truncate = 15,
  other = 16,
  no_mem = 39,
  unsupported_datarep = 54,
  value_too_large = 59,
};

enum class Combiner : int {
  named = 101,
  dup = 102,
  contiguous = 103,
  vector = 104,
  hvector = 105,
  indexed = 106,
  hindexed = 107,
  indexed_block = 108,
  hindexed_block = 109,
  structure = 110,
  subarray = 111,
  darray = 112,
  f90_real = 113,
  f90_complex = 114,
  f90_integer = 115,
  resized = 116,
  value_index = 117,
};

enum class ArrayOrder : int { c = 0xc, fortran = 0xf };
inline constexpr Count kDistributeNone = 16;
inline constexpr Count kDistributeBlock = 17;
inline constexpr Count kDistributeCyclic = 18;
inline constexpr Count kDistributeDefault = 19;

enum class TypeClass : int { integer = 192, real = 193, complex = 194 };

/// MPI_UNDEFINED.
inline constexpr Count kUndefined = -32766;

}  // namespace brant::mpi
