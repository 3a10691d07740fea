#pragma once

#include "brant/core/runtime.h"

namespace brant::mpi {

/// The runtime that MPI made in this process: for programs of C++ that use MPI and brant together, for example to
/// allocate memory of a device. It is there while MPI may be called: between MPI_Init and MPI_Finalize, and while a
/// session is open; outside, this ends the process with a line on standard error. It belongs to the thread that first
/// called MPI_Init or MPI_Session_init, and its calls must not overlap with calls of MPI from other threads, of
/// which brant has one while there are streams that carry out calls (MPIX_Stream_create). Cost: none.
BRANT_API Runtime& runtime();

}  // namespace brant::mpi
