#pragma once

#include "models/mpi/files/file.h"

namespace brant::mpi {

// How files are opened and closed. All members of the communicator call each of them: all have the file, or none has.

/// Throws MPI_ERR_AMODE, MPI_ERR_NOT_SAME, and what the system reports.
[[nodiscard]] File& open_file(Communicator& parent, const char* name, int amode);

/// Nothing of a file may be under way when it is closed. Throws MPI_ERR_OTHER.
void require_closable(const File& file);
/// Closes it; the caller deletes the object then, whatever this throws.
void close_file(File& file);

}  // namespace brant::mpi
