#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "models/mpi/mpich/handle_table.h"
#include "mpi_generated/mpich_constants.h"

/// Handles of MPICH's ABI and of the standard's. MPICH's are ints, but those of files, which point to objects in both.
namespace brant::mpi::mpich {

/// What MPICH has in the place of a handle of the standard's ABI.
template <typename Handle>
using Foreign = std::conditional_t<std::is_same_v<Handle, MPI_File>, MPI_File, int>;

/// MPICH's number of a class of handles, and whether one object may be handed out more than once.
template <typename Handle>
struct HandleClass;
template <>
struct HandleClass<MPI_Comm> {
  static constexpr unsigned kKind = 1;
  static constexpr bool kCounted = true;
};
template <>
struct HandleClass<MPI_Group> {
  static constexpr unsigned kKind = 2;
  static constexpr bool kCounted = false;
};
template <>
struct HandleClass<MPI_Datatype> {
  static constexpr unsigned kKind = 3;
  static constexpr bool kCounted = true;
};
template <>
struct HandleClass<MPI_Errhandler> {
  static constexpr unsigned kKind = 5;
  static constexpr bool kCounted = true;
};
template <>
struct HandleClass<MPI_Op> {
  static constexpr unsigned kKind = 6;
  static constexpr bool kCounted = false;
};
template <>
struct HandleClass<MPI_Info> {
  static constexpr unsigned kKind = 7;
  static constexpr bool kCounted = false;
};
template <>
struct HandleClass<MPI_Win> {
  static constexpr unsigned kKind = 8;
  static constexpr bool kCounted = true;
};
template <>
struct HandleClass<MPI_Request> {
  static constexpr unsigned kKind = 11;
  static constexpr bool kCounted = false;
};
/// MPICH's messages are requests; a number is only looked up as what it is.
template <>
struct HandleClass<MPI_Message> : HandleClass<MPI_Request> {};
template <>
struct HandleClass<MPI_Session> {
  static constexpr unsigned kKind = 14;
  static constexpr bool kCounted = true;
};
template <>
struct HandleClass<MPIX_Stream> {
  static constexpr unsigned kKind = 15;
  static constexpr bool kCounted = true;
};

/// Of the process: ranks that share one have different objects, and so different numbers.
template <typename Handle>
inline constinit HandleTable g_objects{HandleClass<Handle>::kKind, HandleClass<Handle>::kCounted};

namespace detail {

/// Predefined handles of a class differ in their lowest seven bits and in the two highest, which say how they are made.
constexpr std::size_t place_of(int foreign) noexcept {
  const auto bits = static_cast<std::uint32_t>(foreign);
  return (bits & 0x7f) | (bits >> 30) << 7;
}

template <std::size_t Count>
constexpr auto by_place(const std::array<Predefined, Count>& all) {
  std::array<Predefined, 512> placed{};
  for (const Predefined& one : all) placed[place_of(one.mpich)] = one;
  return placed;
}
template <typename Handle>
inline constexpr std::array<Predefined, 512> kByPlace = by_place(kPredefined<Handle>);

inline constexpr std::size_t kNumbers = 0x300;  ///< Of all predefined handles of the standard's ABI.
template <std::size_t Count>
constexpr auto by_number(const std::array<Predefined, Count>& all) {
  std::array<int, kNumbers> numbers{};
  for (const Predefined& one : all) numbers[one.abi] = one.mpich;
  return numbers;
}
template <typename Handle>
inline constexpr std::array<int, kNumbers> kByNumber = by_number(kPredefined<Handle>);

inline constexpr std::uintptr_t kNumberMax = 4095;

}  // namespace detail

/// The handle of the standard's ABI. What is no handle becomes a null pointer, which is none there either: the call
/// says so in its own words.
template <typename Handle>
[[nodiscard]] Handle to_abi(Foreign<Handle> foreign) noexcept {
  if constexpr (std::is_same_v<Handle, MPI_File>) {
    return foreign == nullptr ? MPI_FILE_NULL : foreign;
  } else {
    if (HandleTable::is_made(foreign)) return static_cast<Handle>(g_objects<Handle>.find(foreign));
    const Predefined& known = detail::kByPlace<Handle>[detail::place_of(foreign)];
    return reinterpret_cast<Handle>(std::uintptr_t{known.mpich == foreign ? known.abi : std::uint16_t{0}});
  }
}

/// MPICH's handle of an object that the program gets a handle of.
template <typename Handle>
[[nodiscard]] Foreign<Handle> hand_out(Handle handle) noexcept {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if constexpr (std::is_same_v<Handle, MPI_File>) {
    return handle == MPI_FILE_NULL ? nullptr : handle;
  } else {
    if (number < detail::kNumbers) return detail::kByNumber<Handle>[number];
    return g_objects<Handle>.add(handle);
  }
}

/// The program gives back a handle, which may be a predefined one.
template <typename Handle>
void take_back(Foreign<Handle> foreign) noexcept {
  if constexpr (!std::is_same_v<Handle, MPI_File>) g_objects<Handle>.remove(foreign);
}

/// The handle of an object as long as a function of the program has it: the program may have freed its own.
template <typename Handle>
class Lent {
 public:
  explicit Lent(Handle handle) noexcept : foreign_(hand_out(handle)) {}
  ~Lent() { take_back<Handle>(foreign_); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  [[nodiscard]] Foreign<Handle> get() const noexcept { return foreign_; }

 private:
  const Foreign<Handle> foreign_;
};

}  // namespace brant::mpi::mpich
