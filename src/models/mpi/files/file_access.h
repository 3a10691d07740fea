#pragma once

#include <cstddef>
#include <cstdint>

#include "models/mpi/files/file.h"
#include "models/mpi/typed_buffer.h"

namespace brant::mpi {

/// Where an access begins.
struct AccessPlace {
  enum class By : std::uint8_t {
    offset,      ///< That the call names.
    individual,  ///< The rank's own file pointer, which goes on.
    shared,      ///< The shared file pointer, which goes on.
    ordered,     ///< The same for all ranks together, one behind the other.
  };
  By by = By::individual;
  MPI_Offset offset = 0;
};

/// Carries an access out: how many bytes of memory were read or written. It reads less where the file ends. Pointers go
/// on by what was asked for. The ordered ones wait for all members. Throws MPI_ERR_ACCESS, MPI_ERR_READ_ONLY,
/// MPI_ERR_UNSUPPORTED_OPERATION, and what the system reports.
std::size_t read_file(File& file, const AccessPlace& place, const TypedBuffer& buffer);
std::size_t write_file(File& file, const AccessPlace& place, const TypedBuffer& buffer);

/// Moves a pointer. Throws MPI_ERR_ARG where it would come to lie before the view.
[[nodiscard]] MPI_Offset place_of(const File& file, MPI_Offset offset, int whence, MPI_Offset current);
/// Files that are open for MPI_MODE_SEQUENTIAL have only their shared pointer.
void require_random_access(const File& file);

}  // namespace brant::mpi
