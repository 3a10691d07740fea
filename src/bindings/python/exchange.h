#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "brant/base/exchange.h"

namespace brant::python {

/// What `via` of brant.init is, for brant: python/brant/_via.py makes five functions of a communicator or process
/// group. It takes the GIL for each call, and an exception of Python becomes an Error with its text. With the GIL.
std::unique_ptr<Exchange> make_exchange(const nanobind::object& via);

}  // namespace brant::python
