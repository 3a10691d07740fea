#pragma once

#include <memory>

#include "port/boot.h"

namespace brant::port {

/// Bootstrap through PMI-1, which MPICH's mpiexec, srun --mpi=pmi2 and flux speak over a socket that a process inherits
/// (PMI_FD). Throws Error: peer_rejected if there is no such socket, or nobody answers within 20 s or
/// BRANT_BOOT_TIMEOUT_MS, whichever is shorter; not_supported if MPICH's library is in this process, whose the socket
/// then is. A fence fetches what all processes put for it, in pieces that the launcher takes, mostly of 1 KB.
std::unique_ptr<Boot> open_pmi_boot();

}  // namespace brant::port
