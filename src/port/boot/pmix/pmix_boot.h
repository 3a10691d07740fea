#pragma once

#include <memory>

#include "port/boot.h"

namespace brant::port {

/// True if the environment names a PMIx server: Open MPI's mpirun, prterun, srun --mpi=pmix.
bool pmix_server_present() noexcept;

/// Bootstrap through PMIx; the library is loaded here, brant is never linked to it. Throws Error: not_found if there is
/// no libpmix (the text says where it was looked for), peer_rejected if no server answers.
std::unique_ptr<Boot> open_pmix_boot();

}  // namespace brant::port
