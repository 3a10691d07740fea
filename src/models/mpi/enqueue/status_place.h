#pragma once

#include "models/mpi/request.h"
#include "models/mpi/statuses.h"

namespace brant::mpi {

/// Where the program wants the status of what ends after the call has returned, in the form of its ABI.
struct StatusPlace {
  using Store = void(void* place, const Request::Outcome& outcome, bool with_error) noexcept;

  void* place = nullptr;  ///< Null: it wants none.
  Store* store = nullptr;
  bool with_error = false;  ///< One of several, which tell their errors.

  void tell(const Request::Outcome& outcome) const noexcept {
    if (place != nullptr) store(place, outcome, with_error);
  }
};

/// In the standard's ABI.
inline void store_abi_status(void* place, const Request::Outcome& outcome, bool with_error) noexcept {
  auto* status = static_cast<MPI_Status*>(place);
  store_status(status, outcome);
  if (with_error) status->MPI_ERROR = outcome.error;
}
[[nodiscard]] inline StatusPlace place_of(MPI_Status* status) noexcept {
  return {status != MPI_STATUS_IGNORE ? status : nullptr, &store_abi_status};
}

}  // namespace brant::mpi
