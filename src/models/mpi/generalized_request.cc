#include "models/mpi/generalized_request.h"

#include "models/mpi/statuses.h"

namespace brant::mpi {

int GeneralizedRequest::cancel() noexcept {
  return cancel_ != nullptr ? cancel_(extra_, ended() ? 1 : 0) : MPI_SUCCESS;
}

/// The program fills the status, each time that somebody asks for it.
int GeneralizedRequest::finish() noexcept {
  if (query_ == nullptr) return outcome.error;
  MPI_Status status{};
  store_empty_status(&status);
  outcome.error = query_(extra_, &status);
  const StatusWords words = words_of(status);
  outcome.source = status.MPI_SOURCE;
  outcome.tag = status.MPI_TAG;
  outcome.bytes = static_cast<std::size_t>(words.bytes);
  outcome.cancelled = words.cancelled != 0;
  return outcome.error;
}

int GeneralizedRequest::let_go() noexcept { return free_ != nullptr ? free_(extra_) : MPI_SUCCESS; }

}  // namespace brant::mpi
