#pragma once

#include <string>

namespace brant::cli::info {

/// What of MPI is implemented, chapter by chapter: how many names, and which are missing.
std::string mpi_text();

}  // namespace brant::cli::info
