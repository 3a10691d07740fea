#pragma once

#include <nanobind/nanobind.h>

#include "brant/brant.h"

/// Calls of functions of Python in other processes: `Rpc` of C++ with one function, which takes the name of a function
/// of Python and its arguments as a call of a chare has them.
namespace brant::python {

/// From here on this process runs what others call. With the GIL.
void begin_remote_calls(Runtime& runtime);

/// Before the runtime ends: who waits for a function that has not ended is told, and what still comes is refused. With
/// the GIL.
void end_remote_calls() noexcept;

void bind_remote_calls(nanobind::module_& module);

}  // namespace brant::python
