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

/// Memory of the program, as calls name it.
struct ProgramMemory {
  const void* address;
  MPI_Count count;
  MPI_Datatype type;
  [[nodiscard]] TypedBuffer buffer() const { return {address, count, type}; }
};

// They carry an access out: how many bytes of memory were read or written. Less is read where the file ends. Pointers
// go on by what was asked for. They throw MPI_ERR_ACCESS, MPI_ERR_READ_ONLY, MPI_ERR_UNSUPPORTED_OPERATION, what a
// TypedBuffer does, and what the system reports.

/// Of this rank alone, but for those that are ordered: these wait for all members.
std::size_t read_file(File& file, const AccessPlace& place, const ProgramMemory& memory);
std::size_t write_file(File& file, const AccessPlace& place, const ProgramMemory& memory);
/// Of all members, which call them together.
std::size_t read_file_together(File& file, const AccessPlace& place, const ProgramMemory& memory);
std::size_t write_file_together(File& file, const AccessPlace& place, const ProgramMemory& memory);

/// Moves a pointer. Throws MPI_ERR_ARG where it would come to lie before the view.
[[nodiscard]] MPI_Offset place_of(const File& file, MPI_Offset offset, int whence, MPI_Offset current);
/// Files that are open for MPI_MODE_SEQUENTIAL have only their shared pointer.
void require_random_access(const File& file);

}  // namespace brant::mpi
