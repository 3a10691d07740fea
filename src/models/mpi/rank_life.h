#pragma once

#include <cstdint>

#include "models/mpi/fortran_layer.h"
#include "models/mpi/user_errors.h"

namespace brant::mpi {

/// What a rank has at any time, also before it starts MPI and after it has ended it: where it stands in the world
/// model, and what functions work with that a program may call at any time.
struct RankLife {
  /// Between MPI_Init and MPI_Finalize; sessions do not change it.
  enum class World : std::uint8_t { before, running, over };

  World world = World::before;
  UserErrors errors;
  FortranLayer fortran;
};

/// Of the rank that calls. It never goes, since destructors at the end of a program ask for it.
[[nodiscard]] RankLife& rank_life() noexcept;

}  // namespace brant::mpi
