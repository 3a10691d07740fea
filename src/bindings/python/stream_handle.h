#pragma once

#include <nanobind/nanobind.h>

#include "brant/core/stream.h"

namespace brant::python {

/// A stream as Python names it: a number, or what the libraries make: PyTorch, CuPy, Numba, cuda.core and brant itself.
/// Zero is CUDA's default stream. Throws invalid_argument for anything else.
StreamHandle stream_of(nanobind::handle stream);

/// What was queued on `first` so far comes before what is queued on `second` from here on; the CPU waits for neither.
/// Throws what the device reports.
void put_in_order(Stream& first, Stream& second);

}  // namespace brant::python
