#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/mpi/files/disk_file.h"
#include "models/mpi/files/file_layout.h"

namespace brant::mpi {

// Bytes that lie together in memory, from a position of a view on. Small runs with small gaps between them are read by
// one call of the system, gaps and all, and picked out. Nothing is written but the runs themselves: who wrote gaps back
// would undo what others write there meanwhile.

/// How many bytes there were before the end of the file, if not all.
std::size_t read_runs(const DiskFile& file, const FileLayout& layout, std::uint64_t position, std::span<std::byte> to);

void write_runs(const DiskFile& file, const FileLayout& layout, std::uint64_t position,
                std::span<const std::byte> from);

}  // namespace brant::mpi
