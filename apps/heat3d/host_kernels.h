#pragma once

#include "body.h"

/// The kernels of kernels.cu in plain C++, with their arguments: what the CPU computes with, what an emulated device
/// runs, and what a check compares with. One call does the work of a whole grid. They do not throw.
namespace heat::host {

/// The faces that have a neighbour, from the field into a buffer of faces.
void pack(double* faces, const double* field, Body body) noexcept;

/// next = the temperatures after one more step, of the cells of `box`, or of all boxes of `shell`.
void conduct(double* next, const double* field, const double* ghosts, Body body, Box box) noexcept;
void conduct_shell(double* next, const double* field, const double* ghosts, Body body, Shell shell) noexcept;

/// kSums parts of the sum over all cells.
void add(double* sums, const double* field, std::int64_t cells) noexcept;

}  // namespace heat::host
