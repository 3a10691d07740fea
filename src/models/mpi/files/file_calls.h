#pragma once

#include "models/mpi/calls.h"
#include "models/mpi/files/file.h"

namespace brant::mpi {

/// The body gets the file of a handle.
template <typename Body>
int on_file(const char* function, MPI_File handle, Body&& body) noexcept {
  require_open(function);
  File* const file = object_of<File>(handle);
  return call_at_any_time(function, file, [&] {
    require(file != nullptr, MPI_ERR_FILE, "the file is MPI_FILE_NULL, or none that exists");
    return body(*file);
  });
}

/// For what belongs to no file: its errors are MPI_FILE_NULL's.
template <typename Body>
int without_file(const char* function, Body&& body) noexcept {
  return call(function, static_cast<File*>(nullptr), std::forward<Body>(body));
}

}  // namespace brant::mpi
