#pragma once

#include "models/mpi/tools/control_variables.h"
#include "models/mpi/tools/owned_objects.h"
#include "models/mpi/tools/performance_session.h"

namespace brant::mpi::tools {

/// What one rank has of the tools interface. It is there before MPI_Init and after MPI_Finalize, so it is no part of
/// RankState.
struct ToolState {
  int users = 0;  ///< Calls of MPI_T_init_thread without their MPI_T_finalize.
  OwnedObjects<ControlHandle> controls;
  OwnedObjects<PerformanceSession> sessions;
};

/// Of the rank that calls. Throws std::bad_alloc.
[[nodiscard]] ToolState& tool_state();

}  // namespace brant::mpi::tools
