#pragma once

#include <cstdint>

#include "brant/mpi/mpi.h"

namespace brant::mpi {

/// In which of its three forms a collective was called.
struct Launch {
  enum class Way : std::uint8_t { run, begin, prepare };

  /// MPI_Bcast
  static Launch run(const char* function) noexcept { return {function, Way::run, nullptr}; }
  /// MPI_Ibcast
  static Launch begin(const char* function, MPI_Request* request) noexcept { return {function, Way::begin, request}; }
  /// MPI_Bcast_init
  static Launch prepare(const char* function, MPI_Request* request) noexcept {
    return {function, Way::prepare, request};
  }

  const char* function;
  Way way;
  MPI_Request* request;
};

}  // namespace brant::mpi
