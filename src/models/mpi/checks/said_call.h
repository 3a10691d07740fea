#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "models/mpi/types/datatype.h"

namespace brant::mpi {

/// What a member says of the collective that it calls, as it travels.
struct SaidCall {
  static constexpr std::int32_t kNoRoot = -1;

  std::uint64_t elements = 0;  ///< Of the signature that all members have to name alike, if there is one.
  std::uint64_t hash = 0;
  std::int32_t root = kNoRoot;
  char call[48] = {};  ///< The function.
  char op[36] = {};
  char data[112] = {};  ///< The signature in words; not compared, since one signature has several texts.

  /// Of the present call of the rank that runs.
  static SaidCall current() noexcept;
  void set_call(std::string_view function) noexcept;
  void set_op(std::string_view name) noexcept;
  /// Throws std::bad_alloc.
  void set_data(const Datatype& type, Count count);

  /// MPI_SUCCESS, or the class of the error that two members make who say different things.
  [[nodiscard]] int compare(const SaidCall& other) const noexcept;
  /// "MPI_Reduce (root 0, MPI_SUM, 4 x MPI_INT)"
  [[nodiscard]] std::string text() const;
};

}  // namespace brant::mpi
