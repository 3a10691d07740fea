#pragma once

#include <optional>

#include "brant/coll/reduce_op.h"
#include "models/mpi/types/constructors.h"
#include "models/mpi/types/datatype.h"
#include "models/mpi/types/op.h"

namespace brant::mpi {

/// Accumulates take MPI_REPLACE and MPI_NO_OP, and types made of one predefined type; reductions take neither.
enum class ReduceUse : std::uint8_t { reduction, accumulate };

/// Whether the standard defines the operation for the type: else a fault of the class MPI_ERR_OP that names both.
/// Operations of the program take any type.
[[nodiscard]] Fault check_reduce(const Op& op, const Datatype& type, ReduceUse use);

/// `inout[i] = in[i] op inout[i]` for `count` items, which `check_reduce` lets pass, of memory of the host. `in` holds
/// what comes first where the order matters. Integers wrap around; of two equal values the first one stays, and of
/// pairs the smaller place. For predefined types without MPI_REPLACE and MPI_NO_OP this is done where elements of
/// brant's own collectives are combined (ops/coll/fold.h), as far as these know the type. Types that are made of one
/// predefined type are combined element by element, for accumulates.
void reduce_local(const Op& op, const void* in, void* inout, Count count, const Datatype& type);

/// What brant's collectives and their kernels call it, so that they can do it on devices.
struct BrantReduction {
  DataType type;
  ReduceOp op;
  Count elements;  ///< Of an item: 2 for sums of complex numbers.
};
/// None: they cannot.
[[nodiscard]] std::optional<BrantReduction> brant_reduction(const Op& op, const Datatype& type) noexcept;

}  // namespace brant::mpi
