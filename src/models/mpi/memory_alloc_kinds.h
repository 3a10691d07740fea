#pragma once

#include <string>
#include <string_view>

#include "models/mpi/info.h"

/// Memory allocation kinds (MPI 4.1, chapter "Process Initialization, Creation, and Management"): by which a program
/// learns whether calls take memory of a GPU.
namespace brant::mpi {

inline constexpr std::string_view kMemoryAllocKinds = "mpi_memory_alloc_kinds";

/// What the calls of this process take: "mpi,system", and the kinds of CUDA where its device is a GPU. Empty before the
/// process has a runtime.
[[nodiscard]] std::string memory_alloc_kinds();

/// What the program gets where it asks an object for its info: what the object was given, and the kinds of memory that
/// its calls take, whichever were asked for.
[[nodiscard]] MPI_Info publish_used(const Info& info);

}  // namespace brant::mpi
