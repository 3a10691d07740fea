#pragma once

#include <string>
#include <vector>

#include "brant/mpi/mpi.h"
#include "models/mpi/info.h"
#include "port/boot/launcher/spawn_plan.h"

namespace brant::mpi {

/// One command of MPI_Comm_spawn and MPI_Comm_spawn_multiple, as the root has it.
struct SpawnCommand {
  const char* program = nullptr;
  char** arguments = nullptr;  ///< MPI_ARGV_NULL: none.
  int processes = 0;
  const Info* info = nullptr;  ///< Null: none.
};

/// What is to be started; nothing of it is yet. Throws MPI_ERR_ARG, MPI_ERR_SPAWN, MPI_ERR_INFO_VALUE.
[[nodiscard]] port::launcher::SpawnPlan make_plan(const std::vector<SpawnCommand>& commands, std::string port,
                                                  int own_rank);

/// How many processes the values of the key `soft` ("0:8:2,12") allow, `most` at most. Throws MPI_ERR_INFO_VALUE,
/// MPI_ERR_SPAWN where they allow none.
[[nodiscard]] int count_allowed(const std::string& soft, int most);

/// Where this process meets those that have spawned it: the name of a port, empty if it was not spawned.
[[nodiscard]] std::string port_of_parents();
/// Which command of MPI_Comm_spawn_multiple this process runs.
[[nodiscard]] int own_command();

}  // namespace brant::mpi
