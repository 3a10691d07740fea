#pragma once

#include "grid.h"

/// The kernels of kernels.cu in plain C++, with their arguments: used by the host stencil, and by the device stencil as
/// what an emulated device runs. Pointers are the start of a block's memory as `Layout` describes it. A kernel's grid
/// is a matter of speed: here one call does all of it. They do not throw.
namespace jacobi::host {

/// Start values of all cells and ghost cells.
void fill(double* field, Layout layout, Place place) noexcept;

/// next = average(current) for the cells of `box`, or of all boxes of `shell`. The two fields do not overlap.
void sweep(double* next, const double* current, Layout layout, Box box) noexcept;
void sweep_shell(double* next, const double* current, Layout layout, Shell shell) noexcept;

/// `largest` grows to the largest difference between cells of the same place in the two fields.
void largest_change(double* largest, const double* next, const double* current, Layout layout, Box box) noexcept;

/// Buffer = faces of the field, and back.
void pack(double* buffer, const double* field, PackedFaces faces) noexcept;
void unpack(double* field, const double* buffer, PackedFaces faces) noexcept;

}  // namespace jacobi::host
