#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <string_view>

#include "brant/chare.h"

namespace brant::python {

/// Gives the array of the next data argument, of a type "x" or "Xd".
using LandTyped = std::function<nanobind::object(std::string_view type)>;

/// Reads a value that C++ has written. Throws InvalidArgument for what contradicts its signature.
nanobind::object read_typed(ReadArchive& archive, std::string_view type, const LandTyped& land = {});
/// All values of a signature.
nanobind::tuple read_typed_all(ReadArchive& archive, std::string_view signature, const LandTyped& land = {});

}  // namespace brant::python
