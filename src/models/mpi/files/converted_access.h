#pragma once

#include <cstddef>
#include <cstdint>

#include "models/mpi/files/file.h"
#include "models/mpi/typed_buffer.h"

namespace brant::mpi {

// Accesses to a file whose data looks different from that in memory, a piece of whole items at a time. `position`: in
// the stream of the view. They have bytes to move.

/// How many bytes of memory were read. Of an item in which the file ends, it takes the elements that are whole,
/// if all are of one type.
std::size_t read_converted(File& file, std::uint64_t position, const TypedBuffer& buffer);
void write_converted(File& file, std::uint64_t position, const TypedBuffer& buffer);

}  // namespace brant::mpi
