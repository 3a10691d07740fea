#pragma once

#include <span>

#include "brant/base/api.h"

namespace brant::mpi {

/// One name of MPI, and whether brant implements it.
struct CoveredFunction {
  const char* chapter;
  const char* name;
  bool implemented;
};

/// All of them, chapter by chapter.
[[nodiscard]] BRANT_API std::span<const CoveredFunction> covered_functions() noexcept;

}  // namespace brant::mpi
