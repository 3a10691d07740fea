#pragma once

#include <nanobind/nanobind.h>

namespace brant::python {

/// Reductions over chares of Python: contributions of any objects, combined by functions of Python on every rank, and
/// then by the tree that all reductions of chares go.
void bind_reducing(nanobind::module_& module);

}  // namespace brant::python
