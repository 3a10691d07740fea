#pragma once

#include <optional>

#include "models/mpi/info.h"

namespace brant::mpi {

/// What a layer of Fortran above brant has said of its compiler.
struct FortranLayer {
  std::optional<Info> info;
  bool has_booleans = false;
};

}  // namespace brant::mpi
