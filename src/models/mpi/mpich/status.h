#pragma once

#include <cstdint>

#include "models/mpi/mpich/values.h"
#include "models/mpi/statuses.h"

namespace brant::mpi::mpich {

/// MPI_Status of MPICH. Fortran has the same five words.
struct Status {
  int count_lo;
  int count_hi_and_cancelled;  ///< The lowest bit: cancelled.
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
};
static_assert(sizeof(Status) == kFStatusSize * sizeof(int));

[[nodiscard]] inline MPI_Status status_to_abi(const Status& foreign) noexcept {
  MPI_Status status{};
  status.MPI_SOURCE = rank_to_abi(foreign.MPI_SOURCE);
  status.MPI_TAG = foreign.MPI_TAG == kAnyTag ? MPI_ANY_TAG : foreign.MPI_TAG;
  status.MPI_ERROR = code_to_abi(foreign.MPI_ERROR);
  const auto low = static_cast<std::uint32_t>(foreign.count_lo);
  const auto high = static_cast<std::uint32_t>(foreign.count_hi_and_cancelled);
  set_words(status, {static_cast<std::int64_t>(std::uint64_t{high >> 1} << 32 | low), static_cast<int>(high & 1)});
  return status;
}

/// All but the error code.
inline void store_status(const MPI_Status& status, Status& foreign) noexcept {
  const StatusWords words = words_of(status);
  const auto bytes = static_cast<std::uint64_t>(words.bytes);
  foreign.count_lo = static_cast<int>(static_cast<std::uint32_t>(bytes));
  foreign.count_hi_and_cancelled =
      static_cast<int>(static_cast<std::uint32_t>(bytes >> 32) << 1 | (words.cancelled != 0 ? 1u : 0u));
  foreign.MPI_SOURCE = rank_to_mpich(status.MPI_SOURCE);
  foreign.MPI_TAG = tag_to_mpich(status.MPI_TAG);
}

[[nodiscard]] inline Status status_to_mpich(const MPI_Status& status) noexcept {
  Status foreign{};
  store_status(status, foreign);
  foreign.MPI_ERROR = code_to_mpich(status.MPI_ERROR);
  return foreign;
}

}  // namespace brant::mpi::mpich
