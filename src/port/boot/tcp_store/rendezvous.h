#pragma once

#include <string>

#include "port/boot.h"

namespace brant::port::tcp_store {

/// Where the processes of a job of torchrun meet, and as whom.
struct Rendezvous {
  std::string host;
  int port = 0;
  std::string prefix;  ///< Of all keys: names the run and the attempt, as a store outlives attempts.
  JobInfo job;         ///< Without its id.
};

/// From RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and TORCHELASTIC_*. Throws
/// invalid_argument that names the variable.
Rendezvous rendezvous_from_environment();

}  // namespace brant::port::tcp_store
