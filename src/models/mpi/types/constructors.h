#pragma once

#include <span>
#include <string>

#include "models/mpi/types/datatype.h"

namespace brant::mpi {

/// Why there is no type: the class that the call returns, and a text that names the argument, its value and the cure.
struct Fault {
  ErrorClass error = ErrorClass::success;
  std::string text;
};

/// A new type with one reference, or why there is none.
struct Made {
  DatatypeRef type;
  Fault fault;

  [[nodiscard]] bool ok() const noexcept { return fault.error == ErrorClass::success; }
};

// The constructors of the standard. Displacements are bytes in those with an h, and in `struct_type` and
// `resized_type`; else extents of `old`. `old` may be null, which is an error of the class MPI_ERR_TYPE, as what
// `find_datatype` found; it need not be committed. Lists that belong together have equal lengths, which callers see to.
// The new type keeps `old` alive. Costs O(blocks) time, and memory for what is not regular alone.

Made contiguous_type(Count count, Datatype* old, CallForm form = CallForm::counts);
Made vector_type(Count count, Count length, Count stride, Datatype* old, CallForm form = CallForm::counts);
Made hvector_type(Count count, Count length, Count stride, Datatype* old, CallForm form = CallForm::counts);
Made indexed_type(std::span<const Count> lengths, std::span<const Count> displacements, Datatype* old,
                  CallForm form = CallForm::counts);
Made hindexed_type(std::span<const Count> lengths, std::span<const Count> displacements, Datatype* old,
                   CallForm form = CallForm::counts);
Made indexed_block_type(Count length, std::span<const Count> displacements, Datatype* old,
                        CallForm form = CallForm::counts);
Made hindexed_block_type(Count length, std::span<const Count> displacements, Datatype* old,
                         CallForm form = CallForm::counts);
Made struct_type(std::span<const Count> lengths, std::span<const Count> displacements, std::span<Datatype* const> types,
                 CallForm form = CallForm::counts);
Made resized_type(Datatype* old, Count lb, Count extent, CallForm form = CallForm::counts);
Made dup_type(Datatype* old);

/// `order`: ArrayOrder's number, as the program gave it.
Made subarray_type(std::span<const Count> sizes, std::span<const Count> subsizes, std::span<const Count> starts,
                   int order, Datatype* old, CallForm form = CallForm::counts);

/// The arguments of MPI_Type_create_darray.
struct Distribution {
  Count processes = 1;
  Count rank = 0;
  std::span<const Count> sizes;
  std::span<const Count> kinds;      ///< kDistributeBlock, ...
  std::span<const Count> arguments;  ///< kDistributeDefault, or elements of a block.
  std::span<const Count> grid;       ///< Processes in each dimension.
  int order = 0;
};
Made darray_type(const Distribution& how, Datatype* old, CallForm form = CallForm::counts);

/// The type that these arguments make: what MPI_Type_get_contents gives back, made again. Of named types: MPI_ERR_TYPE.
Made rebuilt_type(const Construction& construction);

}  // namespace brant::mpi
