#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "brant/mpi/mpi.h"
#include "models/mpi/request.h"

namespace brant::mpi {

/// What brant keeps in the words of a status that are the library's.
struct StatusWords {
  std::int64_t bytes = 0;
  std::int32_t cancelled = 0;
};

[[nodiscard]] inline StatusWords words_of(const MPI_Status& status) noexcept {
  StatusWords words;
  std::memcpy(&words.bytes, status.MPI_internal, sizeof words.bytes);
  words.cancelled = status.MPI_internal[2];
  return words;
}

inline void set_words(MPI_Status& status, const StatusWords& words) noexcept {
  std::memcpy(status.MPI_internal, &words.bytes, sizeof words.bytes);
  status.MPI_internal[2] = words.cancelled;
}

/// All but MPI_ERROR, which calls for one request leave as it is.
inline void store_status(MPI_Status* place, const Request::Outcome& outcome) noexcept {
  if (place == MPI_STATUS_IGNORE) return;
  place->MPI_SOURCE = outcome.source;
  place->MPI_TAG = outcome.tag;
  set_words(*place, {static_cast<std::int64_t>(outcome.bytes), outcome.cancelled ? 1 : 0});
}

/// Of what there was nothing to wait for.
inline void store_empty_status(MPI_Status* place) noexcept {
  store_status(place, {});
  if (place != MPI_STATUS_IGNORE) place->MPI_ERROR = MPI_SUCCESS;
}

}  // namespace brant::mpi
