#pragma once

#include "brant/core/runtime.h"

namespace brant::mpi {

/// The runtime that MPI made in this process: for programs of C++ that use MPI and brant together, for example to
/// allocate memory of a device. It exists between MPI_Init and MPI_Finalize; outside, this ends the process with a
/// line on standard error. It belongs to the thread that called MPI_Init, and its calls must not overlap with calls of
/// MPI from other threads. Cost: none.
BRANT_API Runtime& runtime();

}  // namespace brant::mpi
