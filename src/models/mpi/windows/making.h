#pragma once

#include <string>

#include "models/mpi/windows/window.h"

namespace brant::mpi {

// How windows are made and go. All members of the communicator call each of them, and all get the same outcome: where
// the memory of one of them cannot be used, none has a window.

struct WindowSpec {
  MPI_Aint bytes = 0;
  MPI_Aint disp_unit = 1;
  std::string memory = "host";  ///< Name of the kind to allocate.
};

/// Of the program's memory, of any kind. Throws MPI_ERR_SIZE, MPI_ERR_DISP, MPI_ERR_BASE.
[[nodiscard]] Window& make_window(Communicator& communicator, void* base, const WindowSpec& spec);
/// Of memory that it allocates, which other processes of this host map. Throws MPI_ERR_INFO_VALUE for memory of no
/// known kind, and what `Runtime::allocate` reports.
[[nodiscard]] Window& make_allocated_window(Communicator& communicator, const WindowSpec& spec);
/// Of memory that all members map, one part behind the other. Throws MPI_ERR_RMA_SHARED where they cannot.
[[nodiscard]] Window& make_shared_window(Communicator& communicator, const WindowSpec& spec);
[[nodiscard]] Window& make_dynamic_window(Communicator& communicator);

/// Adds memory to a dynamic window, or takes it away. This rank's own affair. Throw MPI_ERR_RMA_ATTACH,
/// MPI_ERR_RMA_FLAVOR.
void attach(Window& window, void* base, MPI_Aint bytes);
void detach(Window& window, const void* base);

/// The window may be used no more; `delete_window` is to follow, whatever it throws. Waits for all members.
void close_window(Window& window);
void delete_window(Window& window) noexcept;

}  // namespace brant::mpi
