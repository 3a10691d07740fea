#pragma once

#include "grid.h"

/// The kernels of kernels.cu in plain C++: used by the host stencil, and as the host version of each kernel on the
/// emulated device. Pointers are the start of a block's memory as `Layout` describes it. They do not throw.
namespace jacobi::host {

/// Start values of all cells and ghost cells.
void fill(double* field, const Layout& layout, const Place& place) noexcept;

/// next = average(current) for the cells of `box`. The two do not overlap.
void sweep(double* next, const double* current, const Layout& layout, const Box& box) noexcept;

/// Buffer = faces of the field, and back.
void pack(double* buffer, const double* field, const PackedFaces& faces) noexcept;
void unpack(double* field, const double* buffer, const PackedFaces& faces) noexcept;

/// The largest |a - b| over the cells; NaN if any difference is NaN.
double largest_difference(const double* a, const double* b, const Layout& layout) noexcept;

}  // namespace jacobi::host
