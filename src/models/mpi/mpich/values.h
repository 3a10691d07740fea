#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "brant/mpi/mpi.h"
#include "mpi_generated/mpich_constants.h"

/// Numbers that mean something, in MPICH's ABI and in the standard's.
namespace brant::mpi::mpich {

/// What means nothing in either ABI: the call refuses it.
inline constexpr int kMeaningless = std::numeric_limits<int>::min() + 1;

/// MPI_UNDEFINED is the same in both. What the table does not have becomes `otherwise`.
template <std::size_t Count>
[[nodiscard]] constexpr int value_to_abi(const std::array<Value, Count>& table, int value, int otherwise) noexcept {
  for (const Value& known : table)
    if (known.mpich == value) return known.abi;
  return value == MPI_UNDEFINED ? MPI_UNDEFINED : otherwise;
}
template <std::size_t Count>
[[nodiscard]] constexpr int value_to_mpich(const std::array<Value, Count>& table, int value) noexcept {
  for (const Value& known : table)
    if (known.abi == value) return known.mpich;
  return value;
}

/// Of values that are joined by |. Bits without a meaning become one that has none there either.
template <std::size_t Count>
[[nodiscard]] constexpr int flags_to_abi(const std::array<Value, Count>& table, int flags) noexcept {
  constexpr int kNoFlag = 1 << 30;
  int joined = 0;
  for (const Value& known : table) {
    if ((flags & known.mpich) == 0) continue;
    joined |= known.abi;
    flags &= ~known.mpich;
  }
  return flags == 0 ? joined : joined | kNoFlag;
}
template <std::size_t Count>
[[nodiscard]] constexpr int flags_to_mpich(const std::array<Value, Count>& table, int flags) noexcept {
  int joined = 0;
  for (const Value& known : table)
    if ((flags & known.abi) != 0) joined |= known.mpich;
  return joined;
}

/// Ranks, and what stands in their place.
[[nodiscard]] constexpr int rank_to_abi(int rank) noexcept {
  if (rank >= 0) [[likely]]
    return rank;
  switch (rank) {
    case kProcNull: return MPI_PROC_NULL;
    case kAnySource: return MPI_ANY_SOURCE;
    case kRoot: return MPI_ROOT;
    default: return rank == MPI_UNDEFINED ? rank : kMeaningless;
  }
}
[[nodiscard]] constexpr int rank_to_mpich(int rank) noexcept {
  if (rank >= 0) [[likely]]
    return rank;
  switch (rank) {
    case MPI_PROC_NULL: return kProcNull;
    case MPI_ANY_SOURCE: return kAnySource;
    case MPI_ROOT: return kRoot;
    default: return rank;
  }
}

[[nodiscard]] constexpr int tag_to_abi(int tag) noexcept {
  if (tag >= 0) [[likely]]
    return tag;
  return tag == kAnyTag ? MPI_ANY_TAG : kMeaningless;
}
[[nodiscard]] constexpr int tag_to_mpich(int tag) noexcept { return tag == MPI_ANY_TAG ? kAnyTag : tag; }

/// Error codes. Those that the program adds lie above the standard's in both. A code of the program's own functions may
/// be any number, which it gets back.
inline constexpr int kAddedCodes = kErrLastcode - MPI_ERR_LASTCODE;
[[nodiscard]] constexpr int code_to_abi(int code) noexcept {
  if (code == MPI_SUCCESS) return code;
  if (code > kErrLastcode) return code - kAddedCodes;
  return value_to_abi(kErrorCodes, code, code);
}
[[nodiscard]] constexpr int code_to_mpich(int code) noexcept {
  if (code == MPI_SUCCESS) [[likely]]
    return code;
  if (code > MPI_ERR_LASTCODE && code <= std::numeric_limits<int>::max() - kAddedCodes) return code + kAddedCodes;
  return value_to_mpich(kErrorCodes, code);
}

/// Keys that a program makes are the same numbers in both.
[[nodiscard]] constexpr int key_to_abi(int key) noexcept { return value_to_abi(kKeys, key, key); }
[[nodiscard]] constexpr int key_to_mpich(int key) noexcept { return value_to_mpich(kKeys, key); }

[[nodiscard]] constexpr int distribution_argument_to_abi(int argument) noexcept {
  return value_to_abi(kDistributionArguments, argument, argument);
}

[[nodiscard]] inline void* place_to_abi(void* place) noexcept {
  return reinterpret_cast<std::intptr_t>(place) == kInPlace ? MPI_IN_PLACE : place;
}
[[nodiscard]] inline const void* place_to_abi(const void* place) noexcept {
  return reinterpret_cast<std::intptr_t>(place) == kInPlace ? MPI_IN_PLACE : place;
}
[[nodiscard]] inline void* buffer_to_abi(void* buffer) noexcept {
  return reinterpret_cast<std::intptr_t>(buffer) == kBufferAutomatic ? MPI_BUFFER_AUTOMATIC : buffer;
}
[[nodiscard]] constexpr MPI_Offset displacement_to_abi(MPI_Offset displacement) noexcept {
  return displacement == kDisplacementCurrent ? MPI_DISPLACEMENT_CURRENT : displacement;
}

}  // namespace brant::mpi::mpich
