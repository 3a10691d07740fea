#pragma once

#include "models/mpi/call_error.h"
#include "models/mpi/types/op.h"

namespace brant::mpi {

/// The operation of a handle. Throws MPI_ERR_OP.
[[nodiscard]] inline Op& operation_of(MPI_Op handle) {
  Op* op = find_op(handle);
  require(op != nullptr, MPI_ERR_OP, "the operation is MPI_OP_NULL, or none that exists");
  return *op;
}

}  // namespace brant::mpi
