#include "models/mpi/files/agreement.h"

#include <vector>

#include "models/mpi/communicators.h"

namespace brant::mpi {

namespace {

template <typename T>
std::vector<T> values_of_all(Communicator& communicator, T own) {
  std::vector<T> values(static_cast<std::size_t>(communicator.size()));
  gather_from_all(communicator, &own, values.data(), sizeof own);
  return values;
}

}  // namespace

void agree(Communicator& communicator, const std::optional<CallError>& own) {
  const std::vector<std::int32_t> errors =
      values_of_all<std::int32_t>(communicator, own ? own->error_class() : kSuccess);
  if (own) throw CallError(*own);
  for (std::size_t i = 0; i < errors.size(); ++i)
    require(errors[i] == MPI_SUCCESS, errors[i], "it failed on rank {} of the file, so no rank has done it", i);
}

void require_same(Communicator& communicator, std::int64_t value, const char* what) {
  const std::vector<std::int64_t> values = values_of_all(communicator, value);
  for (std::size_t i = 0; i < values.size(); ++i) {
    require(values[i] == values[0], MPI_ERR_NOT_SAME,
            "{} must be the same on all ranks of the file: {} on rank {}, {} on rank 0", what, values[i], i, values[0]);
  }
}

}  // namespace brant::mpi
