#pragma once

#include <cstdint>
#include <vector>

#include "models/mpi/types/abi.h"
#include "models/mpi/types/datatype_ref.h"

namespace brant::mpi {

/// Whether a type was made by a call whose counts are `int`, or by its large form (MPI_Type_vector_c). They differ in
/// what MPI_Type_get_contents gives back, and in nothing else.
enum class CallForm : std::uint8_t { ints, counts };

/// With what arguments a type was made, as MPI_Type_get_envelope and MPI_Type_get_contents give them, in the standard's
/// order. Empty for named types.
struct Construction {
  Combiner combiner = Combiner::named;
  CallForm form = CallForm::ints;
  std::vector<int> integers;
  std::vector<std::int64_t> addresses;
  std::vector<Count> large_counts;
  std::vector<DatatypeRef> types;

  friend bool operator==(const Construction&, const Construction&) = default;
};

}  // namespace brant::mpi
