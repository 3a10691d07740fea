#pragma once

#include <nanobind/nanobind.h>

namespace brant::python {

/// Chares of C++ for Python: the classes that libraries expose, and calls of their entries. The other way is in
/// `Member`.
void bind_foreign(nanobind::module_& module);

}  // namespace brant::python
