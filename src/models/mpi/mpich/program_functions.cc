#include <memory>
#include <new>

#include "models/mpi/mpich/arguments.h"
#include "models/mpi/mpich/own_calls.h"
#include "mpi_generated/api.h"

/// Generalized requests and representations of data, whose functions get a pointer of the program's. Here it is one to
/// the program's functions and its pointer.
namespace brant::mpi::mpich {

namespace {

struct Operation {
  GrequestQueryFunction* query;
  GrequestFreeFunction* discard;
  GrequestCancelFunction* cancel;
  void* extra;
};

int query_operation(void* extra, MPI_Status* status) {
  const auto* operation = static_cast<const Operation*>(extra);
  if (operation->query == nullptr) return MPI_SUCCESS;
  Status told = status_to_mpich(*status);
  const int outcome = operation->query(operation->extra, &told);
  *status = status_to_abi(told);
  return code_to_abi(outcome);
}

/// The last call that an operation gets.
int free_operation(void* extra) {
  const std::unique_ptr<Operation> operation(static_cast<Operation*>(extra));
  return operation->discard != nullptr ? code_to_abi(operation->discard(operation->extra)) : MPI_SUCCESS;
}

int cancel_operation(void* extra, int complete) {
  const auto* operation = static_cast<const Operation*>(extra);
  return operation->cancel != nullptr ? code_to_abi(operation->cancel(operation->extra, complete)) : MPI_SUCCESS;
}

/// Stays until the process ends, as representations do.
template <typename Conversion>
struct Representation {
  Conversion* read;
  Conversion* write;
  DatarepExtentFunction* extent;
  void* extra;
};

template <typename Conversion, typename Number>
int read_data(void* memory, MPI_Datatype type, Number count, void* file, MPI_Offset position, void* extra) {
  const auto* known = static_cast<const Representation<Conversion>*>(extra);
  return code_to_abi(known->read(memory, Lent(type).get(), count, file, position, known->extra));
}
template <typename Conversion, typename Number>
int write_data(void* memory, MPI_Datatype type, Number count, void* file, MPI_Offset position, void* extra) {
  const auto* known = static_cast<const Representation<Conversion>*>(extra);
  return code_to_abi(known->write(memory, Lent(type).get(), count, file, position, known->extra));
}
template <typename Conversion>
int tell_extent(MPI_Datatype type, MPI_Aint* extent, void* extra) {
  const auto* known = static_cast<const Representation<Conversion>*>(extra);
  return code_to_abi(known->extent(Lent(type).get(), extent, known->extra));
}

template <typename Number, typename Conversion, typename Register>
int register_representation(Register* call, const char* name, Conversion* read_fn, Conversion* write_fn,
                            DatarepExtentFunction* extent_fn, void* extra) {
  using Kept = Representation<Conversion>;
  auto kept = std::unique_ptr<Kept>(new (std::nothrow) Kept{read_fn, write_fn, extent_fn, extra});
  if (kept == nullptr) api::end_without_memory();
  const int outcome = call(name, read_fn != nullptr ? read_data<Conversion, Number> : nullptr,
                           write_fn != nullptr ? write_data<Conversion, Number> : nullptr,
                           extent_fn != nullptr ? tell_extent<Conversion> : nullptr, kept.get());
  if (outcome == MPI_SUCCESS) static_cast<void>(kept.release());  // NOLINT(bugprone-unused-return-value): brant has it
  return code_to_mpich(outcome);
}

}  // namespace

namespace own {

int grequest_start(GrequestQueryFunction* query_fn, GrequestFreeFunction* free_fn, GrequestCancelFunction* cancel_fn,
                   void* extra, int* request) {
  auto operation = std::unique_ptr<Operation>(new (std::nothrow) Operation{query_fn, free_fn, cancel_fn, extra});
  if (operation == nullptr) api::end_without_memory();
  const int outcome = api::grequest_start(query_operation, free_operation, cancel_operation, operation.get(),
                                          Made<MPI_Request>(request));
  if (outcome == MPI_SUCCESS)
    static_cast<void>(operation.release());  // NOLINT(bugprone-unused-return-value): brant has it
  return code_to_mpich(outcome);
}

int register_datarep(const char* datarep, DatarepConversionFunction* read_fn, DatarepConversionFunction* write_fn,
                     DatarepExtentFunction* extent_fn, void* extra) {
  return register_representation<int>(api::register_datarep, datarep, read_fn, write_fn, extent_fn, extra);
}
int register_datarep_c(const char* datarep, DatarepConversionFunctionC* read_fn, DatarepConversionFunctionC* write_fn,
                       DatarepExtentFunction* extent_fn, void* extra) {
  return register_representation<MPI_Count>(api::register_datarep_c, datarep, read_fn, write_fn, extent_fn, extra);
}

}  // namespace own
}  // namespace brant::mpi::mpich
