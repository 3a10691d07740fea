#include <limits>

#include "models/mpi/error_handler.h"
#include "models/mpi/mpich/arguments.h"
#include "models/mpi/mpich/own_calls.h"
#include "models/mpi/types/bound_operation.h"

/// Operations and error handlers of the program. brant keeps its function beside one of these, which calls it.
namespace brant::mpi::mpich {

namespace {

template <typename Function, typename Number>
void combine(ProgramFunction function, void* in, void* inout, Count count, MPI_Datatype type) {
  const Lent<MPI_Datatype> lent(type);
  auto number = static_cast<Number>(count);
  int handle = lent.get();
  reinterpret_cast<Function*>(function)(in, inout, &number, &handle);
}

template <typename Function, typename Number>
int create_operation(Function* function, int commute, int* op) {
  const BoundOperation bound{combine<Function, Number>, reinterpret_cast<ProgramFunction>(function),
                             std::numeric_limits<Number>::max()};
  return code_to_mpich(api::op_create_bound(bound, commute, Made<MPI_Op>(op)));
}

template <typename Function, typename Handle>
void tell(ProgramFunction function, void* handle, int* code) {
  const Lent<Handle> lent(*static_cast<Handle*>(handle));
  Foreign<Handle> given = lent.get();
  int told = code_to_mpich(*code);
  reinterpret_cast<Function*>(function)(&given, &told);
  *code = code_to_abi(told);
}

template <typename Handle, typename Function>
int create_handler(const char* name, Function* function, int* errhandler) {
  const BoundErrorHandler bound{tell<Function, Handle>, reinterpret_cast<ProgramFunction>(function)};
  return code_to_mpich(api::errhandler_create_bound(name, bound, Made<MPI_Errhandler>(errhandler)));
}

}  // namespace

namespace own {

int op_create(UserFunction* user_fn, int commute, int* op) {
  return create_operation<UserFunction, int>(user_fn, commute, op);
}
int op_create_c(UserFunctionC* user_fn, int commute, int* op) {
  return create_operation<UserFunctionC, MPI_Count>(user_fn, commute, op);
}

int comm_create_errhandler(CommErrhandlerFunction* function, int* errhandler) {
  return create_handler<MPI_Comm>("MPI_Comm_create_errhandler", function, errhandler);
}
int win_create_errhandler(WinErrhandlerFunction* function, int* errhandler) {
  return create_handler<MPI_Win>("MPI_Win_create_errhandler", function, errhandler);
}
int session_create_errhandler(SessionErrhandlerFunction* function, int* errhandler) {
  return create_handler<MPI_Session>("MPI_Session_create_errhandler", function, errhandler);
}
int file_create_errhandler(FileErrhandlerFunction* function, int* errhandler) {
  return create_handler<MPI_File>("MPI_File_create_errhandler", function, errhandler);
}

}  // namespace own
}  // namespace brant::mpi::mpich
