#include "models/mpi/mpich/arguments.h"
#include "models/mpi/mpich/own_calls.h"
#include "mpi_generated/api.h"

/// Names that MPI-3 removed and old binaries call.
namespace brant::mpi::mpich::own {

namespace {

struct Bounds {
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  int outcome = MPI_SUCCESS;
};

Bounds bounds_of(int datatype) {
  Bounds bounds;
  bounds.outcome = api::type_get_extent(to_abi<MPI_Datatype>(datatype), &bounds.lower, &bounds.extent);
  return bounds;
}

}  // namespace

int address(void* location, MPI_Aint* address) { return code_to_mpich(api::get_address(location, address)); }

int errhandler_create(CommErrhandlerFunction* function, int* errhandler) {
  return comm_create_errhandler(function, errhandler);
}
int errhandler_get(int comm, int* errhandler) {
  return code_to_mpich(api::comm_get_errhandler(to_abi<MPI_Comm>(comm), Made<MPI_Errhandler>(errhandler)));
}
int errhandler_set(int comm, int errhandler) {
  return code_to_mpich(api::comm_set_errhandler(to_abi<MPI_Comm>(comm), to_abi<MPI_Errhandler>(errhandler)));
}

int type_extent(int datatype, MPI_Aint* extent) {
  const Bounds bounds = bounds_of(datatype);
  if (bounds.outcome == MPI_SUCCESS) *extent = bounds.extent;
  return code_to_mpich(bounds.outcome);
}
int type_lb(int datatype, MPI_Aint* displacement) {
  const Bounds bounds = bounds_of(datatype);
  if (bounds.outcome == MPI_SUCCESS) *displacement = bounds.lower;
  return code_to_mpich(bounds.outcome);
}
int type_ub(int datatype, MPI_Aint* displacement) {
  const Bounds bounds = bounds_of(datatype);
  if (bounds.outcome == MPI_SUCCESS) *displacement = bounds.lower + bounds.extent;
  return code_to_mpich(bounds.outcome);
}

int type_hindexed(int count, int blocklengths[], MPI_Aint displacements[], int oldtype, int* newtype) {
  const api::SmallForm form;
  const api::Widened<int, MPI_Count> lengths(blocklengths, count);
  return code_to_mpich(api::type_create_hindexed(count, lengths.data(), displacements, to_abi<MPI_Datatype>(oldtype),
                                                 Made<MPI_Datatype>(newtype)));
}
int type_hvector(int count, int blocklength, MPI_Aint stride, int oldtype, int* newtype) {
  const api::SmallForm form;
  return code_to_mpich(
      api::type_create_hvector(count, blocklength, stride, to_abi<MPI_Datatype>(oldtype), Made<MPI_Datatype>(newtype)));
}
int type_struct(int count, int blocklengths[], MPI_Aint displacements[], int types[], int* newtype) {
  const api::SmallForm form;
  const api::Widened<int, MPI_Count> lengths(blocklengths, count);
  return code_to_mpich(api::type_create_struct(count, lengths.data(), displacements,
                                               Handles<MPI_Datatype>(types, count), Made<MPI_Datatype>(newtype)));
}

}  // namespace brant::mpi::mpich::own
