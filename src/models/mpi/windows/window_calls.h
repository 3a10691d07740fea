#pragma once

#include "models/mpi/calls.h"
#include "models/mpi/windows/window.h"

namespace brant::mpi {

/// The body gets the window of a handle.
template <typename Body>
int on_window(const char* function, MPI_Win handle, Body&& body) noexcept {
  require_open(function);
  Window* const window = object_of<Window>(handle);
  return call(function, window, [&] {
    require(window != nullptr, MPI_ERR_WIN, "the window is MPI_WIN_NULL, or none that exists");
    return body(*window);
  });
}

}  // namespace brant::mpi
