#include "models/mpi/coverage.h"

namespace brant::mpi {

namespace {

constexpr CoveredFunction kFunctions[] = {
#include "mpi_generated/coverage.inc"
};

}  // namespace

std::span<const CoveredFunction> covered_functions() noexcept { return kFunctions; }

}  // namespace brant::mpi
