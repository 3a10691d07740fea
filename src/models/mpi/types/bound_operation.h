#pragma once

#include "brant/base/api.h"
#include "models/mpi/types/abi.h"

namespace brant::mpi {

/// A function of a program that was compiled for another ABI, of a form that only the one who calls it knows.
using ProgramFunction = void (*)();

/// An operation of such a program: brant calls the library that has its ABI, which calls the function.
struct BoundOperation {
  using Call = void(ProgramFunction function, void* in, void* inout, Count count, MPI_Datatype type);

  Call* call = nullptr;
  ProgramFunction function = nullptr;
  Count most = 0;  ///< Elements of one call.
};

namespace api {

/// As MPI_Op_create, which the errors name.
BRANT_API int op_create_bound(const BoundOperation& operation, int commute, MPI_Op* op) noexcept;

}  // namespace api
}  // namespace brant::mpi
