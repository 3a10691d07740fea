#include <algorithm>
#include <cstddef>

#include "models/mpi/mpich/arguments.h"
#include "models/mpi/mpich/own_calls.h"
#include "mpi_generated/api.h"

/// What a datatype was made of: handles of types, and among the integers the orders and distributions of arrays.
namespace brant::mpi::mpich {

namespace {

void translate_order(int& order) noexcept { order = value_to_mpich(kOrders, order); }

/// The integers are those of the call that made the type, in its order. `has_counts`: that was one with large counts,
/// whose sizes are elsewhere.
void translate_integers(int combiner, bool has_counts, int integers[]) noexcept {
  if (combiner == MPI_COMBINER_SUBARRAY) {
    const int dimensions = integers[0];
    translate_order(integers[has_counts ? 1 : 1 + 3 * dimensions]);
  } else if (combiner == MPI_COMBINER_DARRAY) {
    const int dimensions = integers[2];
    int* const distributions = integers + 3 + (has_counts ? 0 : dimensions);
    int* const arguments = distributions + dimensions;
    std::for_each_n(distributions, dimensions, [](int& kind) { kind = value_to_mpich(kDistributions, kind); });
    std::for_each_n(arguments, dimensions,
                    [](int& argument) { argument = value_to_mpich(kDistributionArguments, argument); });
    translate_order(arguments[std::ptrdiff_t{2} * dimensions]);
  }
}

}  // namespace

namespace own {

int type_get_contents_c(int datatype, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_large_counts,
                        MPI_Count max_datatypes, int integers[], MPI_Aint addresses[], MPI_Count large_counts[],
                        int datatypes[]) {
  const auto type = to_abi<MPI_Datatype>(datatype);
  MPI_Count integer_count = 0;
  MPI_Count address_count = 0;
  MPI_Count large_count = 0;
  MPI_Count type_count = 0;
  int combiner = MPI_COMBINER_NAMED;
  int outcome = api::type_get_envelope_c(type, &integer_count, &address_count, &large_count, &type_count, &combiner);
  if (outcome != MPI_SUCCESS) return code_to_mpich(outcome);
  Room<MPI_Datatype> types(std::min(type_count, std::max<MPI_Count>(max_datatypes, 0)));
  outcome = api::type_get_contents_c(type, max_integers, max_addresses, max_large_counts, max_datatypes, integers,
                                     addresses, large_counts, types.data());
  if (outcome == MPI_SUCCESS) {
    for (std::size_t i = 0; i < types.count(); ++i) datatypes[i] = hand_out(types[i]);
    translate_integers(combiner, large_count != 0, integers);
  }
  return code_to_mpich(outcome);
}

int type_get_contents(int datatype, int max_integers, int max_addresses, int max_datatypes, int integers[],
                      MPI_Aint addresses[], int datatypes[]) {
  return type_get_contents_c(datatype, max_integers, max_addresses, 0, max_datatypes, integers, addresses, nullptr,
                             datatypes);
}

}  // namespace own
}  // namespace brant::mpi::mpich
