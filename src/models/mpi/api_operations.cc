#include <memory>

#include "models/mpi/calls.h"
#include "models/mpi/operations.h"
#include "models/mpi/typed_buffer.h"
#include "models/mpi/types/reduce.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

int op_create(MPI_User_function* user_fn, int commute, MPI_Op* op) noexcept {
  return call("MPI_Op_create", [&] {
    require_place(reinterpret_cast<const void*>(user_fn), "user_fn");
    require_place(static_cast<const void*>(op), "op");
    *op = std::make_unique<Op>(user_fn, nullptr, commute != 0).release()->handle();
  });
}

int op_create_c(MPI_User_function_c* user_fn, int commute, MPI_Op* op) noexcept {
  return call("MPI_Op_create_c", [&] {
    require_place(reinterpret_cast<const void*>(user_fn), "user_fn");
    require_place(static_cast<const void*>(op), "op");
    *op = std::make_unique<Op>(nullptr, user_fn, commute != 0).release()->handle();
  });
}

int op_create_bound(const BoundOperation& operation, int commute, MPI_Op* op) noexcept {
  return call("MPI_Op_create", [&] {
    require_place(reinterpret_cast<const void*>(operation.function), "user_fn");
    require_place(static_cast<const void*>(op), "op");
    *op = std::make_unique<Op>(operation, commute != 0).release()->handle();
  });
}

int op_free(MPI_Op* op) noexcept {
  return call("MPI_Op_free", [&] {
    require_place(static_cast<const void*>(op), "op");
    Op& found = operation_of(*op);
    require(!found.predefined(), MPI_ERR_OP, "{} is there as long as MPI is", found.name());
    *op = MPI_OP_NULL;
    found.release();
  });
}

int op_commutative(MPI_Op op, int* commute) noexcept {
  return call("MPI_Op_commutative", [&] { *commute = operation_of(op).commutes() ? 1 : 0; });
}

int reduce_local(const void* inbuf, void* inoutbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op) noexcept {
  return call("MPI_Reduce_local", [&] {
    const Op& found = operation_of(op);
    const TypedBuffer in(inbuf, count, datatype);
    const TypedBuffer inout(inoutbuf, count, datatype);
    const mpi::Fault fault = check_reduce(found, in.type(), ReduceUse::reduction);
    require(fault.error == ErrorClass::success, static_cast<int>(fault.error), "{}", fault.text);
    require(host_accessible(in.kind()) && host_accessible(inout.kind()), MPI_ERR_UNSUPPORTED_OPERATION,
            "MPI_Reduce_local of device memory is not there yet: copy it to the host");
    mpi::reduce_local(found, inbuf, inoutbuf, count, in.type());
  });
}

}  // namespace brant::mpi::api
