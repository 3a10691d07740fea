#pragma once

#include "brant/base/api.h"
#include "models/mpi/enqueue/status_place.h"

/// Enqueued calls whose statuses are stored after they have returned, for the ABIs that have forms of their own for
/// statuses.
namespace brant::mpi::api {

BRANT_API int recv_enqueue(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                           const StatusPlace& status) noexcept;
/// MPIX_Wait_enqueue and MPIX_Waitall_enqueue: `function` is the one that was called.
BRANT_API int wait_enqueue(const char* function, int count, MPI_Request requests[],
                           const StatusPlace* statuses) noexcept;

}  // namespace brant::mpi::api
