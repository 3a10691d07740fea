#pragma once

#include <string>

namespace brant {

/// Where a process runs, as far as the kernel tells processes apart.
struct Place {
  std::string host;           ///< Boot id and IPC namespace: who shares memory with whom. UCX decides alike.
  std::string pid_namespace;  ///< Where a process id means something; CUDA IPC and pidfd need a shared one.
  bool known = false;         ///< False if the kernel did not tell something of it: then equal texts prove nothing.
};

/// Reads /proc, about 30 us. Thread-safe. Throws nothing but bad_alloc.
Place own_place();

}  // namespace brant
